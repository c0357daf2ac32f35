import type { Page } from 'playwright-core'

/** Each would run, or become something else than text, where text is taken for a page. */
export const CORPUS = [
  '<img src=x onerror="window.owned=1">',
  '"><script>window.owned=1</script>',
  "javascript:window.owned=1//'-window.owned-'",
  '<svg/onload=window.owned=1>{{constructor}}',
  '</textarea><iframe srcdoc="<script>top.owned=1</script>">',
  '\u202e<a href="javascript:window.owned=1">\u2066click me</a>',
  "'+(window.owned=1)+' <math><mtext><style><img src=x onerror=window.owned=1>",
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is meant for whoever takes it for one.
  '[click me](javascript:window.owned=1) ${window.owned=1} <details open ontoggle=window.owned=1>',
]

/** Elements that the corpus would create; the page itself has none of them. */
const FOREIGN = [
  ...['img[src="x"]', 'iframe', 'object', 'embed', 'math', 'mtext', 'details[ontoggle]', 'form[action]'],
  ...['[onerror]', '[onload]', '[ontoggle]', '[srcdoc]', 'a[href^="javascript:" i]', 'body script'],
  ...['svg[onload]', 'main style:not(.xterm *)', 'base', 'a:not([href]):not([class])'],
]

/** Keeps what the page's policy had to keep out: with text shown as text, nothing. To be called before the first page. */
export async function keepReports(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const kept = window as unknown as { reports: string[] }
    kept.reports = []
    document.addEventListener('securitypolicyviolation', ({ violatedDirective, blockedURI }) =>
      kept.reports.push(`${violatedDirective} ${blockedURI}`),
    )
  })
}

/** Scripts that ran, elements that came to be, what the policy had to keep out. */
export async function harmIn(page: Page): Promise<string[]> {
  return await page.evaluate((foreign) => {
    const { owned, reports = ['no reports were kept'] } = window as unknown as {
      owned?: unknown
      reports?: string[]
    }
    const found = foreign.flatMap((one) => [...document.querySelectorAll(one)])
    return [
      ...(owned === undefined ? [] : ['a script ran']),
      ...found.map((one) => `an element came to be: ${one.outerHTML.slice(0, 120)}`),
      ...reports.map((one) => `the policy kept out: ${one}`),
    ]
  }, FOREIGN)
}
