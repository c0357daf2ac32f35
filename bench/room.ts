/** Compares the control room with 1,000 agents, 100,000 messages and 500 events a second with that of an empty team. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { type Client, createClient } from '../src/client/client.ts'
import { readTeam, startOrchub } from '../src/main.ts'
import { createDaemon, type Daemon } from '../tests/fakes/daemon.ts'
import { openBrowser, openWindow, type Window } from '../tests/web/browser.ts'
import { type Figure, median } from './report.ts'

const AGENTS = 1000
const MESSAGES = 100_000
const SECONDS = Number(process.env.BENCH_ROOM_SECONDS ?? 60)
const RENDERS = 7
const PER_SECOND = 500
const TICK_MS = 100
/** The views to show while events arrive, in this order, twice. */
const PLACES = [
  'team?as=list',
  'team?as=graph',
  'conversations',
  'conversations?as=thread',
  'audit',
  'metrics',
]
const READY = '.member, .empty-title, .react-flow__node, .rows-one, .plot'

const agent = (index: number) => `agent-${index % AGENTS}`

function configOf(agents: number): string {
  const lines = Array.from(
    { length: agents },
    (_, index) =>
      `  agent-${index}: ${index === 0 ? '{}' : `{ parent: ${agent(Math.floor((index - 1) / 12))} }`}`,
  )
  return `agents:\n${lines.join('\n')}\nlimits: { rate: off, hops: off, ping_pong: off, pair_rate: off }\n`
}

async function fill({ configFile }: Daemon) {
  const loaded = readTeam(configFile)
  if (!loaded.ok) throw new Error(`the configuration of the bench is wrong: ${JSON.stringify(loaded)}`)
  const orchub = await startOrchub({ config: loaded.value.config, port: 0 })
  const wave = 2000
  for (let sent = 0; sent < MESSAGES; sent += wave) {
    await Promise.all(
      Array.from({ length: wave }, async (_, index) => {
        const number = sent + index
        const receipt = await orchub.engine.handle(
          { kind: 'agent', agent: agent(number) },
          {
            type: 'send_message',
            fields: {
              to: agent(number * 7 + 1),
              title: `Part ${number}`,
              content: `What ${number} is about`,
            },
          },
        )
        if (receipt.status !== 'delivered') throw new Error(`not delivered: ${JSON.stringify(receipt)}`)
      }),
    )
  }
  await orchub.close()
}

async function signIn(browser: Browser, daemon: Daemon): Promise<Window & { cdp: CDPSession }> {
  const window = await openWindow(browser, { width: 1440, height: 900 })
  const client = createClient({ url: daemon.url, token: daemon.operatorToken() })
  await window.page.addInitScript(watchFirstRender, READY)
  await window.page.goto(`${daemon.url}${(await client.mintLogin()).path}`)
  await window.page.waitForSelector(READY)
  const cdp = await window.context.newCDPSession(window.page)
  await cdp.send('Network.enable')
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: true })
  return { ...window, cdp }
}

/** Runs in the page before its scripts: records the first content and every long task. */
function watchFirstRender(ready: string) {
  const kept = window as unknown as { firstRender?: number; longest: number }
  kept.longest = 0
  const look = () => {
    if (document.querySelector(ready) !== null) kept.firstRender = performance.now()
    else requestAnimationFrame(look)
  }
  requestAnimationFrame(look)
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) kept.longest = Math.max(kept.longest, duration)
  }).observe({ type: 'longtask' })
}

/** Both teams show the list; a small team would show the graph by default. */
async function firstRender(page: Page): Promise<number> {
  await page.evaluate(() => history.replaceState(null, '', '#/team?as=list'))
  await page.reload()
  await page.waitForFunction(() => 'firstRender' in window)
  return await page.evaluate(() => (window as unknown as { firstRender: number }).firstRender)
}

/** Sends events at an even pace until aborted; returns their number. */
function startEvents(client: Client): () => Promise<number> {
  let sent = 0
  let isOver = false
  const startedAt = performance.now()
  const work = (async () => {
    while (!isOver) {
      const due = Math.floor(((performance.now() - startedAt) / 1000) * PER_SECOND) - sent
      if (due > 0) {
        const many = Array.from({ length: Math.min(due, 500) }, (_, index) => ({
          type: 'send_message',
          to: agent((sent + index) * 13),
          title: `Live ${sent + index}`,
          content: 'It happens now',
        }))
        await client.commands(many)
        sent += many.length
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS))
    }
  })()
  return async () => {
    isOver = true
    await work
    return sent
  }
}

const longest = (page: Page) =>
  page.evaluate(() => {
    const kept = window as unknown as { longest: number }
    const most = kept.longest
    kept.longest = 0
    return most
  })

async function heap(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage')
  return (await cdp.send('Runtime.getHeapUsage')).usedSize
}

/** The number of elements that represent one item each. */
const rowsShown = (page: Page) =>
  page.evaluate(() =>
    Math.max(
      ...['.rows-one', '.react-flow__node', 'li', 'option', 'tr'].map(
        (one) => document.querySelectorAll(one).length,
      ),
    ),
  )

async function goThrough(page: Page, seconds: number) {
  let slowest = { ms: 0, place: '' }
  let rows = 0
  for (const place of PLACES) {
    await page.evaluate((hash) => {
      location.hash = hash
    }, `#/${place}`)
    const until = performance.now() + (seconds * 1000) / PLACES.length
    await page.waitForSelector(READY)
    while (performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 500))
      rows = Math.max(rows, await rowsShown(page))
    }
    const ms = await longest(page)
    if (process.env.BENCH_ROOM_VERBOSE) console.error(place, Math.round(ms), rows)
    if (ms > slowest.ms) slowest = { ms, place }
  }
  return { slowest, rows }
}

/** Bytes that a browser loads before the first view: the entry file and its imports. */
function firstLoadBytes(loaded: ReadonlySet<string>): number {
  const dist = join(import.meta.dirname, '..', 'web', 'dist')
  return globSync('assets/*.js', { cwd: dist })
    .filter((file) => loaded.has(`/${file}`))
    .reduce((sum, file) => sum + gzipSync(readFileSync(join(dist, file))).length, 0)
}

export async function runRoomBench(): Promise<Figure[]> {
  const [empty, full] = [await createDaemon(configOf(1)), await createDaemon(configOf(AGENTS))]
  const browser = await openBrowser()
  try {
    await fill(full)
    await Promise.all([empty.start(), full.start()])
    const windows = { empty: await signIn(browser, empty), full: await signIn(browser, full) }
    const renders: Record<keyof typeof windows, number[]> = { empty: [], full: [] }
    const loaded = new Set<string>()
    windows.full.page.on('request', (request) => loaded.add(new URL(request.url()).pathname))
    await firstRender(windows.full.page)
    const bytes = firstLoadBytes(loaded)
    // Alternate, so that other load on the machine affects both.
    for (let run = 0; run < RENDERS; run++)
      for (const name of ['empty', 'full'] as const) renders[name].push(await firstRender(windows[name].page))
    await windows.empty.context.close()

    const { page, cdp, complaints } = windows.full
    const end = startEvents(createClient({ url: full.url, token: full.operatorToken() }))
    await longest(page)
    const startedAt = performance.now()
    const first = await goThrough(page, SECONDS / 2)
    const before = await heap(cdp)
    const second = await goThrough(page, SECONDS / 2)
    const after = await heap(cdp)
    const took = (performance.now() - startedAt) / 1000
    const sent = await end()
    if (complaints.length > 0) throw new Error(`the page complained: ${complaints.join('; ')}`)
    const slowest = first.slowest.ms > second.slowest.ms ? first.slowest : second.slowest
    return [
      {
        name: `first render with ${AGENTS.toLocaleString('en')} agents and ${MESSAGES.toLocaleString('en')} messages`,
        baseline: 'with one agent and none',
        ratio: median(renders.full) / median(renders.empty),
        target: { atMost: 1.5 },
        note: `${median(renders.full).toFixed(0)} ms, ${median(renders.empty).toFixed(0)} ms`,
      },
      {
        name: 'JavaScript of the first load, gzipped',
        baseline: '300 kB',
        ratio: bytes / 300_000,
        target: { atMost: 1 },
        note: `${Math.round(bytes / 1000)} kB`,
      },
      {
        name: `longest task in ${Math.round(took)} s with ${Math.round(sent / took)} events a second`,
        baseline: '200 ms',
        ratio: slowest.ms / 200,
        target: { atMost: 1 },
        note: slowest.ms === 0 ? 'none over 50 ms' : `${slowest.ms.toFixed(0)} ms, in ${slowest.place}`,
      },
      {
        name: `heap after them`,
        baseline: 'at half-time',
        ratio: after / before,
        target: { atMost: 1.1 },
        note: `${(after / 1e6).toFixed(1)} MB, ${(before / 1e6).toFixed(1)} MB`,
      },
      {
        name: 'rows in the page at once',
        baseline: '200',
        ratio: Math.max(first.rows, second.rows) / 200,
        target: { atMost: 1 },
        note: `${Math.max(first.rows, second.rows)} at most`,
      },
    ]
  } finally {
    await browser.close()
    await Promise.all([empty.close(), full.close()])
  }
}
