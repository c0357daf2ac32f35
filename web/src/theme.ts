const STORAGE_KEY = 'orchub.theme'

/** The theme chosen on this page, or else the system's. */
export function applyTheme() {
  const chosen = localStorage.getItem(STORAGE_KEY)
  const isLight = matchMedia('(prefers-color-scheme: light)').matches
  document.documentElement.dataset.theme = chosen ?? (isLight ? 'light' : 'dark')
}

export function switchTheme() {
  const next = document.documentElement.dataset.theme === 'light' ? 'dark' : 'light'
  localStorage.setItem(STORAGE_KEY, next)
  applyTheme()
  dispatchEvent(new Event('orchub-theme'))
}

/** A colour of the style sheet, for drawing on a canvas. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim()
}
