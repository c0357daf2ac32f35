import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { canBrowse } from './browser.ts'
import { enter, useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startDaemon, type TestDaemon } from './team.ts'

const CONFIG = `agents: { Master: {}, Worker: { parent: Master } }
limits: { rate: off }
`

describe.skipIf(!canBrowse)('a session in the control room', { timeout: 90_000 }, () => {
  let service: TestDaemon
  const { open, openWindow } = useControlRoom(async () => (service = await startDaemon(CONFIG)))

  const send = (title: string) =>
    service.client().command({ type: 'send_message', to: 'Worker', title, content: 'One' })
  const titles = (page: Page) => page.locator('.thread .line-main').allInnerTexts()

  it('survives a killed service: says so, and reconnects without a gap or a repeat', async () => {
    const { page } = await open()
    await visit(page, 'conversations?as=thread')
    await send('Before the storm')
    await page.getByText('Before the storm').waitFor()
    await page.getByText('live', { exact: true }).waitFor()
    await service.kill()
    await page.getByText('connection lost').waitFor()
    await service.start()
    for (const title of ['After the storm', 'And once more']) await send(title)
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('And once more').waitFor()
    const shown = (await titles(page)).join('\n')
    for (const title of ['Before the storm', 'After the storm', 'And once more'])
      expect(shown.split(title)).toHaveLength(2)
    // The page holds each audit entry exactly once.
    await visit(page, 'team?as=graph')
    const links = page.locator('.activity li a')
    await links.first().waitFor()
    const seen = await links.evaluateAll((all) => all.map((one) => one.getAttribute('href')))
    expect(new Set(seen).size).toBe(seen.length)
    expect((await page.locator('.activity').innerText()).split('After the storm')).toHaveLength(2)
  })

  it('ends at once with its token, and the page says how to sign in again', async () => {
    const { page } = await open()
    const session = (await service.client().tokens()).tokens.findLast(
      ({ expires_at }) => expires_at !== undefined,
    )!
    await service.client().revokeTokens(session.id)
    await page.getByText('Your session has ended.').waitFor()
    await page.getByText('orc open', { exact: true }).waitFor()
    await page.reload()
    await page.getByText('orc open', { exact: true }).waitFor()
  })

  it('ends by itself when it expires, without another request', async () => {
    const { page } = await open({ prepare: (it) => it.clock.install() })
    await page.getByRole('heading', { name: 'Team' }).waitFor()
    await page.clock.fastForward(7 * 24 * 3600_000 + 1000)
    await page.getByText('Your session has ended.').waitFor()
    await page.getByText('orc open', { exact: true }).waitFor()
  })

  it('starts with a link that works once', async () => {
    const once = await service.link()
    const [{ page: first }, { page: second }] = [await openWindow(), await openWindow()]
    await enter(first, once)
    expect(first.url()).not.toContain('login')
    await second.goto(once)
    await second.getByText('already used').waitFor()
  })

  it('continues if the same browser uses its link again', async () => {
    const once = await service.link()
    const { page, context } = await openWindow()
    await enter(page, once)
    const other = await context.newPage()
    await other.goto(once)
    await other.getByRole('heading', { name: 'Team' }).waitFor()
    expect(other.url()).not.toContain('login')
    await page.getByText('live', { exact: true }).waitFor()
  })

  it('opens the address that was requested before signing in, in every window', async () => {
    const { page, context } = await openWindow()
    await page.goto(`${service.url}/#/agents/Worker?tab=mail`)
    await page.getByText('orc open', { exact: true }).waitFor()
    const waiting = await context.newPage()
    await waiting.goto(`${service.url}/#/rules`)
    await waiting.getByText('orc open', { exact: true }).waitFor()
    await page.goto(await service.link())
    await page.getByRole('tab', { name: 'Messages', selected: true }).waitFor()
    expect(page.url()).toBe(`${service.url}/#/agents/Worker?tab=mail`)
    await waiting.getByRole('heading', { name: 'Rules' }).waitFor()
    // Only once: the next link leads to the team.
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    await page.goto(await service.link())
    await page.getByRole('heading', { name: 'Team' }).waitFor()
  })

  it('waits for a service that has not started yet', async () => {
    const { page } = await open()
    await page.route('**/api/v1/me', (route) => route.abort())
    await page.reload()
    await page.getByText('The service is not responding').waitFor()
    await page.unroute('**/api/v1/me')
    await page.getByRole('navigation', { name: 'Views' }).waitFor()
    await until(async () => (await page.getByText('live', { exact: true }).count()) === 1)
  })
})
