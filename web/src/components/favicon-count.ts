/** Uses one file per number: the CSP rejects images that the page generates. */
const FAVICONS = import.meta.glob<string>('../favicons/*.svg', {
  eager: true,
  query: '?url',
  import: 'default',
})
const PLAIN = '/favicon.svg'

/** Shows the number of open requests in the favicon, and as a badge where the page is installed as an app. */
export function showRequestCount(count: number) {
  const wanted = count === 0 ? PLAIN : FAVICONS[`../favicons/${count > 9 ? 'more' : count}.svg`]!
  const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]')
  if (icon !== null && icon.getAttribute('href') !== wanted) icon.setAttribute('href', wanted)
  const badge = navigator as Navigator & { setAppBadge?: (count: number) => Promise<void> }
  badge.setAppBadge?.(count).catch(() => {})
}
