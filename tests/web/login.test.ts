import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'
import { canBrowse, openBrowser, openWindow } from './browser.ts'
import { enter, until, visit } from './page.ts'

const CONFIG = `agents: { Master: {}, Worker: { parent: Master } }
people: { vera: { role: viewer } }
limits: { rate: off }
`

describe.skipIf(!canBrowse)('a session in the control room', { timeout: 90_000 }, () => {
  let browser: Browser
  let service: Daemon

  beforeAll(async () => {
    browser = await openBrowser()
    service = await createDaemon(CONFIG)
    await service.start()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await service?.close()
  })

  const client = (token = service.operatorToken()) => createClient({ url: service.url, token })
  const link = async (person?: string) => {
    const token = person === undefined ? undefined : (await client().mintToken(person)).token
    return `${service.url}${(await client(token).mintLogin()).path}`
  }
  const send = (title: string) =>
    client().command({ type: 'send_message', to: 'Worker', title, content: 'One' })
  const titles = (page: Page) => page.locator('.thread .line-main').allInnerTexts()

  it('survives a killed service: says so, and reconnects without a gap or a repeat', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await link())
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
    await window.context.close()
  })

  it('shows the same as another session at the same time', async () => {
    const [one, other] = [await openWindow(browser), await openWindow(browser)]
    const pages = [await enter(one, await link()), await enter(other, await link('vera'))]
    for (const page of pages) await visit(page, 'conversations?as=thread')
    await send('For both')
    for (const page of pages) await page.getByText('For both').waitFor()
    expect(await titles(pages[0]!)).toEqual(await titles(pages[1]!))
    await Promise.all([one.context.close(), other.context.close()])
  })

  it('of a viewer is read-only', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await link('vera'))
    await page.getByText('read only').waitFor()
    for (const place of ['agents/Worker', 'inbox', 'tasks', 'audit']) {
      await visit(page, place)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const names = /Stop all|Message|Take over|Start|Pause|Reset|Stop|Interrupt|Approve|Cancel/
      expect(await page.getByRole('main').getByRole('button', { name: names }).count(), place).toBe(0)
    }
    const statuses = await page.evaluate(async () => {
      const headers = {
        'content-type': 'application/json',
        'x-orc-session': localStorage.getItem('orchub.session')!,
      }
      const post = async (path: string, body: object) =>
        (await fetch(path, { method: 'POST', headers, body: JSON.stringify(body) })).status
      return [
        await post('/api/v1/halt', {}),
        await post('/api/v1/agents/Worker/interrupt', {}),
        await post('/api/v1/agents/Worker/terminal/take-over', {}),
        await post('/api/v1/runs/run_1/resume', {}),
      ]
    })
    expect(statuses).toEqual([403, 403, 403, 403])
    await window.context.close()
  })

  it('ends at once with its token, and the page says how to sign in again', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await link())
    const session = (await client().tokens()).tokens.findLast(({ expires_at }) => expires_at !== undefined)!
    await client().revokeTokens(session.id)
    await page.getByText('Your session has ended.').waitFor()
    await page.getByText('orc open', { exact: true }).waitFor()
    await page.reload()
    await page.getByText('orc open', { exact: true }).waitFor()
    await window.context.close()
  })

  it('ends by itself when it expires, without another request', async () => {
    const window = await openWindow(browser)
    await window.page.clock.install()
    const page = await enter(window, await link())
    await page.getByRole('heading', { name: 'Team' }).waitFor()
    await page.clock.fastForward(7 * 24 * 3600_000 + 1000)
    await page.getByText('Your session has ended.').waitFor()
    await page.getByText('orc open', { exact: true }).waitFor()
    await window.context.close()
  })

  it('starts with a link that works once', async () => {
    const once = await link()
    const first = await openWindow(browser)
    await enter(first, once)
    expect(first.page.url()).not.toContain('login')
    const second = await openWindow(browser)
    await second.page.goto(once)
    await second.page.getByText('already used').waitFor()
    await Promise.all([first.context.close(), second.context.close()])
  })

  it('continues if the same browser uses its link again', async () => {
    const once = await link()
    const window = await openWindow(browser)
    const page = await enter(window, once)
    const other = await window.context.newPage()
    await other.goto(once)
    await other.getByRole('heading', { name: 'Team' }).waitFor()
    expect(other.url()).not.toContain('login')
    await page.getByText('live', { exact: true }).waitFor()
    await window.context.close()
  })

  it('opens the address that was requested before signing in, in every window', async () => {
    const window = await openWindow(browser)
    const { page } = window
    await page.goto(`${service.url}/#/agents/Worker?tab=mail`)
    await page.getByText('orc open', { exact: true }).waitFor()
    const waiting = await window.context.newPage()
    await waiting.goto(`${service.url}/#/rules`)
    await waiting.getByText('orc open', { exact: true }).waitFor()
    await page.goto(await link())
    await page.getByRole('tab', { name: 'Messages', selected: true }).waitFor()
    expect(page.url()).toBe(`${service.url}/#/agents/Worker?tab=mail`)
    await waiting.getByRole('heading', { name: 'Rules' }).waitFor()
    // Only once: the next link leads to the team.
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    await page.goto(await link())
    await page.getByRole('heading', { name: 'Team' }).waitFor()
    await window.context.close()
  })

  it('waits for a service that has not started yet', async () => {
    const window = await openWindow(browser)
    await enter(window, await link())
    await window.page.route('**/api/v1/me', (route) => route.abort())
    await window.page.reload()
    await window.page.getByText('The service is not responding').waitFor()
    await window.page.unroute('**/api/v1/me')
    await window.page.getByRole('navigation', { name: 'Views' }).waitFor()
    await until(async () => (await window.page.getByText('live', { exact: true }).count()) === 1)
    await window.context.close()
  })
})
