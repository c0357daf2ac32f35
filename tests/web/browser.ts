import { spawnSync } from 'node:child_process'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'

/** Finds the Chromium of this machine; nothing is downloaded. */
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
 * Whether to run the browser tests. Without Chromium they are skipped on a developer's machine. In CI, where
 * `scripts/setup.sh browser` installs it, they fail instead, so that a missing browser is noticed.
 */
export const canBrowse = executablePath !== undefined || process.env.CI !== undefined
if (executablePath === undefined) {
  process.stderr.write(
    'Chromium is not installed, so the tests of the control room are skipped. Install it (apt-get install chromium), or set ORC_CHROMIUM.\n',
  )
}

/** Turns off Chromium's own network requests: the tests connect to this machine only. */
const QUIET = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
  ...['--disable-background-networking', '--disable-component-update', '--disable-dev-shm-usage'],
]

export function openBrowser(): Promise<Browser> {
  if (executablePath === undefined)
    throw new Error('Chromium is not installed. Install it (apt-get install chromium), or set ORC_CHROMIUM.')
  return chromium.launch({ executablePath, args: QUIET })
}

export interface Window {
  page: Page
  context: BrowserContext
  /** Errors of the page, and what the CSP blocked. */
  complaints: string[]
}

export interface WindowOptions {
  width?: number
  height?: number
  theme?: 'dark' | 'light'
}

export async function openWindow(
  browser: Browser,
  { width = 1280, height = 800, theme = 'dark' }: WindowOptions = {},
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
