import type { Page } from 'playwright-core'

/** Texts that run a script or create elements if they are rendered as HTML. */
export const CORPUS = [
  '<img src=x onerror="window.owned=1">',
  '"><script>window.owned=1</script>',
  "javascript:window.owned=1//'-window.owned-'",
  '<svg/onload=window.owned=1>{{constructor}}',
  '</textarea><iframe srcdoc="<script>top.owned=1</script>">',
  '\u202e<a href="javascript:window.owned=1">\u2066click me</a>',
  "'+(window.owned=1)+' <math><mtext><style><img src=x onerror=window.owned=1>",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a test input that must not be evaluated.
  '[click me](javascript:window.owned=1) ${window.owned=1} <details open ontoggle=window.owned=1>',
]

/** Elements that the corpus would create; the page itself has none of them. */
const FOREIGN = [
  ...['img[src="x"]', 'iframe', 'object', 'embed', 'math', 'mtext', 'details[ontoggle]', 'form[action]'],
  ...['[onerror]', '[onload]', '[ontoggle]', '[srcdoc]', 'a[href^="javascript:" i]', 'body script'],
  ...['svg[onload]', 'main style:not(.xterm *)', 'base', 'a:not([href]):not([class])'],
]

/** Records violations of the CSP; text shown as text causes none. Call it before the first page is opened. */
export async function recordReports(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const recorded = window as unknown as { reports: string[] }
    recorded.reports = []
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      recorded.reports.push(`${violatedDirective} ${blockedURI}`),
    )
  })
}

/** Scripts that ran, elements that were created, and violations of the CSP. */
export async function harmIn(page: Page): Promise<string[]> {
  return await page.evaluate((foreign) => {
    const { owned, reports = ['reports were not recorded'] } = window as unknown as {
      owned?: unknown
      reports?: string[]
    }
    const found = foreign.flatMap((one) => [...document.querySelectorAll(one)])
    return [
      ...(owned === undefined ? [] : ['a script ran']),
      ...found.map((one) => `an element was created: ${one.outerHTML.slice(0, 120)}`),
      ...reports.map((one) => `the CSP blocked: ${one}`),
    ]
  }, FOREIGN)
}
