import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { canBrowse } from '../browser.ts'
import { useControlRoom } from '../control-room.ts'
import { until, visit } from '../page.ts'
import { startDaemon, type TestDaemon } from '../team.ts'

const CONFIG = `agents: { Master: {}, Worker: { parent: Master } }
limits: { rate: off }
`

/** More than the connections that a browser opens to one service. */
const MANY = 8

describe.skipIf(!canBrowse)('the event stream of a browser', { timeout: 90_000 }, () => {
  let service: TestDaemon
  const { openWindow } = useControlRoom(async () => (service = await startDaemon(CONFIG)))

  const send = (title: string) =>
    service.client().command({ type: 'send_message', to: 'Worker', title, content: 'One' })

  /** Opens windows of one browser, each with the list of conversations. `streams` counts their open event streams. */
  async function openWindows(count: number, prepare = async (_: Page) => {}) {
    const { context, page: first } = await openWindow()
    const open = new Map<Page, number>()
    const streams = () => [...open.values()].reduce((sum, one) => sum + one, 0)
    const watch = (page: Page) => {
      open.set(page, 0)
      const count = (by: number) => (request: { url(): string }) => {
        if (new URL(request.url()).pathname === '/api/v1/events') open.set(page, open.get(page)! + by)
      }
      page.on('request', count(1))
      page.on('requestfailed', count(-1))
      page.on('requestfinished', count(-1))
      page.on('close', () => open.delete(page))
    }
    watch(first)
    await first.goto(await service.link())
    await first.getByText('live', { exact: true }).waitFor()
    await visit(first, 'conversations?as=thread')
    const pages = [first]
    while (pages.length < count) {
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      watch(page)
      await prepare(page)
      await page.goto(`${service.url}/#/conversations?as=thread`)
      await page.getByText('live', { exact: true }).waitFor()
      pages.push(page)
    }
    const leader = () => [...open].find(([, held]) => held > 0)?.[0]
    return { pages, streams, leader }
  }

  const seen = (pages: readonly Page[], title: string) =>
    Promise.all(pages.map((page) => page.getByText(title, { exact: false }).first().waitFor()))

  it('is shared by all windows, however many there are (S2.16)', async () => {
    const { pages, streams } = await openWindows(MANY)
    expect(streams()).toBe(1)
    await send('To all windows')
    await seen(pages, 'To all windows')
    expect(streams()).toBe(1)
  })

  it('continues in another window without a gap when its window closes', async () => {
    const { pages, streams, leader } = await openWindows(3)
    const first = leader()!
    const rest = pages.filter((page) => page !== first)
    await Promise.all([first.close(), send('While it closed')])
    await send('After it closed')
    for (const title of ['While it closed', 'After it closed']) await seen(rest, title)
    await until(() => streams() === 1)
    for (const page of rest)
      expect(
        (await page.locator('.thread').allInnerTexts()).join('\n').split('While it closed'),
      ).toHaveLength(2)
  })

  it('moves from a window that hangs to a visible one', async () => {
    const { pages, leader } = await openWindows(2, (page) => page.clock.install())
    const first = leader()!
    const other = pages.find((page) => page !== first)!
    // This window holds the lock and the stream but doesn't respond.
    await first.evaluate(() => {
      BroadcastChannel.prototype.postMessage = () => {}
    })
    const taken = other.waitForRequest((request) => request.url().includes('/api/v1/events'))
    await other.clock.runFor(30_000)
    await taken
    await send('Past the one that hangs')
    await seen([other], 'Past the one that hangs')
  })

  it('belongs to one browser and one session', async () => {
    const [one, other] = [await openWindows(2), await openWindows(2)]
    expect([one.streams(), other.streams()]).toEqual([1, 1])
    await send('To both browsers')
    await seen([...one.pages, ...other.pages], 'To both browsers')
  })

  it('is separate for each window without locks, over plain HTTP from another machine', async () => {
    const { context, page } = await openWindow()
    await context.addInitScript(() => Object.defineProperty(navigator, 'locks', { value: undefined }))
    let streams = 0
    context.on('request', (request) => {
      if (new URL(request.url()).pathname === '/api/v1/events') streams += 1
    })
    await page.goto(await service.link())
    await page.getByText('live', { exact: true }).waitFor()
    const second = await context.newPage()
    await second.goto(`${service.url}/#/conversations?as=thread`)
    await second.getByText('live', { exact: true }).waitFor()
    await visit(page, 'conversations?as=thread')
    await send('Without locks')
    await seen([page, second], 'Without locks')
    expect(streams).toBe(2)
  })
})
