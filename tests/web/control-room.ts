import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest'
import { openBrowser, openWindow, type Window, type WindowOptions } from './browser.ts'

/** A service with a control room. */
interface Service {
  /** A link that signs in once. */
  link(person?: string): Promise<string>
  close(): Promise<void>
}

interface SignInOptions extends WindowOptions {
  /** Signs in as this person instead of the operator. */
  person?: string
  /** Runs before the page loads. */
  prepare?: (page: Page) => Promise<unknown>
}

/**
 * Starts a browser and a service before the tests of a file, and closes them at its end. `openWindow` opens an empty
 * window, `open` one that is signed in. Windows that a test opens close with it.
 */
export function useControlRoom(start: () => Promise<Service>) {
  let browser: Browser | undefined
  let service: Service | undefined
  let ofTest: BrowserContext[] | undefined
  beforeAll(async () => {
    browser = await openBrowser()
    service = await start()
  }, 90_000)
  beforeEach(() => {
    ofTest = []
  })
  afterEach(async () => {
    for (const context of ofTest ?? []) await context.close()
    ofTest = undefined
  })
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  async function openEmpty(options: WindowOptions = {}): Promise<Window> {
    const window = await openWindow(browser!, options)
    ofTest?.push(window.context)
    return window
  }
  async function open(options: SignInOptions = {}): Promise<Window> {
    const window = await openEmpty(options)
    await options.prepare?.(window.page)
    await enter(window.page, await service!.link(options.person))
    return window
  }
  return { openWindow: openEmpty, open }
}

/** Signs in by a link that works once. */
export async function enter(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.getByRole('navigation', { name: 'Views' }).waitFor()
}
