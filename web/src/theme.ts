const KEPT = 'orchub.theme'

/** What the person chose here, else what their system says. */
export function applyTheme() {
  const chosen = localStorage.getItem(KEPT)
  const isLight = matchMedia('(prefers-color-scheme: light)').matches
  document.documentElement.dataset.theme = chosen ?? (isLight ? 'light' : 'dark')
}

export function switchTheme() {
  const next = document.documentElement.dataset.theme === 'light' ? 'dark' : 'light'
  localStorage.setItem(KEPT, next)
  applyTheme()
  dispatchEvent(new Event('orchub-theme'))
}

/** A colour of the style sheet, for what is drawn on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
}
