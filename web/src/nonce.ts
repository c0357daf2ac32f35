/** Libraries put style elements into the page; the CSP takes those that carry the nonce of this page, and no others. */
export function stampStyles() {
  const nonce = document.querySelector<HTMLElement>('meta[property="csp-nonce"]')?.nonce
  if (nonce === undefined || nonce === '') return
  const create = document.createElement.bind(document)
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    const element = create(name, options)
    if (element instanceof HTMLStyleElement) element.nonce = nonce
    return element
  }) as typeof document.createElement
}
