import { spawnSync } from 'node:child_process'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

/** A real Chromium, as the machine has it; nothing is downloaded. */
function findChromium(): string | undefined {
  const named = process.env.ORC_CHROMIUM
  if (named !== undefined && named !== '') return named
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    const found = spawnSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).stdout.trim()
    if (found !== '') return found
  }
  return undefined
}

const executablePath = findChromium()

/**
 * Whether these tests can be run. On somebody's own machine without a browser they are skipped, and say so; in CI,
 * where `scripts/setup.sh browser` installs one, that would be a hole that nobody sees, and they fail.
 */
export const canBrowse = executablePath !== undefined || process.env.CI !== undefined
if (executablePath === undefined) {
  process.stderr.write(
    'No Chromium: the tests of the control room need one (apt-get install chromium, or ORC_CHROMIUM).\n',
  )
}

/** Chromium's own talk to its makers is switched off: the tests reach nothing but this machine. */
const QUIET = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-dev-shm-usage'],
]

export function openBrowser(): Promise<Browser> {
  if (executablePath === undefined) throw new Error('There is no Chromium on this machine')
  return chromium.launch({ executablePath, args: QUIET })
}

export interface Window {
  page: Page
  context: BrowserContext
  /** Errors of the page, and what the CSP blocked. */
  complaints: string[]
}

export async function openWindow(
  browser: Browser,
  { width = 1280, height = 800, theme = 'dark' as 'dark' | 'light' } = {},
): Promise<Window> {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (message.type() === 'error') complaints.push(`${message.text()} ${message.location().url}`)
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  page.setDefaultTimeout(15_000)
  return { page, context, complaints }
}
