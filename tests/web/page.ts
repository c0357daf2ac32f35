import axe from 'axe-core'
import type { Page } from 'playwright-core'

export const visit = (page: Page, place: string) =>
  page.evaluate((hash) => {
    location.hash = hash
  }, `#/${place}`)

export async function until(fits: () => Promise<boolean> | boolean, ms = 20_000): Promise<void> {
  const deadline = Date.now() + ms
  while (!(await fits())) {
    if (Date.now() > deadline) throw new Error(`The condition was not met within ${ms} ms`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

interface Found {
  violations: { id: string; nodes: { target: unknown; failureSummary?: string }[] }[]
}

/** Accessibility violations that axe finds on the page. */
export async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe.source)
  return await page.evaluate(async () => {
    const checker = (window as unknown as { axe: { run(context: object): Promise<Found> } }).axe
    // Terminals have the colors of the agent's program.
    const { violations: found } = await checker.run({ exclude: ['.xterm'] })
    return found.map(
      ({ id, nodes }) =>
        `${id}: ${nodes.map(({ target, failureSummary }) => `${JSON.stringify(target)} ${failureSummary ?? ''}`).join('; ')}`,
    )
  })
}

/** Elements that make the page, the view or a dialog wider than the window. */
export function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const places = [document.documentElement, ...document.querySelectorAll('main, header.top, [role=dialog]')]
    const wide = places.filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth)
    if (wide.length === 0) return []
    const right = (one: Element) => Math.round(one.getBoundingClientRect().right)
    const over = [...document.querySelectorAll('body *')].filter((one) => right(one) > innerWidth)
    return [...wide, ...over].map((one) => `${one.tagName} ${one.className} to ${right(one)}`)
  })
}
