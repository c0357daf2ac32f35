/** Files, one for each number: the CSP lets no picture in that the page makes itself. */
const MARKS = import.meta.glob<string>('../favicons/*.svg', { eager: true, query: '?url', import: 'default' })
const PLAIN = '/favicon.svg'

/** How many questions wait, on the icon of the tab, and on that of the app where the page is installed as one. */
export function showCount(count: number) {
  const wanted = count === 0 ? PLAIN : MARKS[`../favicons/${count > 9 ? 'more' : count}.svg`]!
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (icon !== null && icon.getAttribute('href') !== wanted) icon.setAttribute('href', wanted)
  const badge = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void> }
  badge.setAppBadge?.(count).catch(() => {})
}
