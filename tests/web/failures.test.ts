import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Client, createClient } from '../../src/client/client.ts'
import { canBrowse, openBrowser, openWindow } from './browser.ts'
import { enter, until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

/** More than the connections that a browser opens to one service. */
const MANY = 8

describe.skipIf(!canBrowse)('the control room, when something goes wrong', { timeout: 90_000 }, () => {
  let browser: Browser
  let team: TestTeam
  let worker: Client

  beforeAll(async () => {
    browser = await openBrowser()
    team = await startTeam(
      {
        Master: { script: [] },
        Worker: { more: { parent: 'Master', permissions: { terminate_agent: 'ask' } }, script: [] },
      },
      { limits: { rate: 'off', hops: 'off', ping_pong: 'off' } },
    )
    worker = createClient({ url: team.url, token: (await team.client.mintToken('Worker')).token })
    for (const name of ['Master', 'Worker']) await until(async () => (await team.stateOf(name)) === 'idle')
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    await team?.close()
  })

  const question = async (text: string) => {
    await worker.command({ type: 'request_user_input', content: text, question: text, choices: 'yes, no' })
    await until(async () =>
      (await team.client.humanRequests()).requests.some((request) => request.question.includes(text)),
    )
  }
  const stateOf = async (text: string) =>
    (await team.client.humanRequests({ state: 'all' })).requests.find(({ question: asked }) =>
      asked.includes(text),
    )?.state
  const answerAll = async () => {
    for (const { id } of (await team.client.humanRequests()).requests)
      await team.client.decide(id, { decision: 'answer', comment: 'yes' })
  }
  const chosen = (page: Page, text: string) => page.locator('[data-chosen=true].request', { hasText: text })

  it('keeps the rest of the page when a part cannot be loaded, and loads it on request', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await page.route(/assets\/audit-.*\.js/, (route) => route.abort())
    await visit(page, 'audit')
    await page.getByText('could not be shown').waitFor()
    await page.getByRole('button', { name: 'Stop all' }).waitFor()
    await page.unrouteAll()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Audit' }).waitFor()
    await window.context.close()
  })

  it('keeps the rest of the page when a view fails, and shows the next view', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await page.route('**/api/v1/rules/matrix*', (route) => route.fulfill({ json: {} }))
    await visit(page, 'rules')
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    await visit(page, 'metrics')
    await page.getByRole('heading', { name: 'Metrics' }).waitFor()
    await window.context.close()
  })

  it('ignores keys for an unseen question: held down, below a dialog, or right after it appears', async () => {
    for (const text of ['first thing', 'second thing']) await question(text)
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await visit(page, 'inbox')
    await chosen(page, 'first thing').getByRole('button', { name: 'Answer', disabled: false }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('1')
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    // A key held down sends repeated events; only the first press counts.
    await page.evaluate(() => {
      const press = (repeat: boolean) => dispatchEvent(new KeyboardEvent('keydown', { key: '1', repeat }))
      press(true)
    })
    await page.waitForTimeout(300)
    expect([await stateOf('first thing'), await stateOf('second thing')]).toEqual(['open', 'open'])
    // The same key again, just as the next request takes its place.
    await page.evaluate(() => {
      const press = () => dispatchEvent(new KeyboardEvent('keydown', { key: '1' }))
      const watching = new MutationObserver(() => {
        if (document.querySelectorAll('.request').length > 1) return
        watching.disconnect()
        press()
      })
      watching.observe(document.body, { childList: true, subtree: true })
      press()
    })
    await until(async () => (await stateOf('first thing')) !== 'open')
    await chosen(page, 'second thing').getByRole('button', { name: 'Answer', disabled: false }).waitFor()
    expect(await stateOf('second thing')).toBe('open')
    await page.keyboard.press('1')
    await until(async () => (await stateOf('second thing')) !== 'open')
    await window.context.close()
  })

  it('selects no request by itself when the addressed one is gone; j continues', async () => {
    for (const text of ['third thing', 'fourth thing']) await question(text)
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await visit(page, 'inbox')
    await chosen(page, 'third thing').waitFor()
    await page.keyboard.press('j')
    await chosen(page, 'fourth thing').waitFor()
    const gone = (await team.client.humanRequests()).requests.find((one) =>
      one.question.includes('fourth thing'),
    )!
    await team.client.decide(gone.id, { decision: 'answer', comment: 'yes' })
    await page.getByText('by operator', { exact: false }).first().waitFor()
    await page.keyboard.press('1')
    await page.waitForTimeout(300)
    expect(await stateOf('third thing')).toBe('open')
    await page.keyboard.press('j')
    await chosen(page, 'third thing').waitFor()
    await answerAll()
    await window.context.close()
  })

  it('works in more windows than a browser has connections: they share one stream (S2.16)', async () => {
    const { context, page: first } = await openWindow(browser)
    await first.goto(await team.link())
    await first.getByText('live', { exact: true }).waitFor()
    const pages = [first]
    for (let count = 1; count < MANY; count++) {
      const page = await context.newPage()
      page.setDefaultTimeout(15_000)
      await page.goto(`${team.url}/#/team?as=graph`)
      pages.push(page)
    }
    for (const page of pages) await page.getByText('live', { exact: true }).waitFor()
    const tell = async (title: string, to: readonly Page[]) => {
      await team.client.command({ type: 'send_message', to: 'Worker', title, content: title })
      for (const page of to) {
        const line = page.locator('.activity li', { hasText: title }).first()
        await line.waitFor()
      }
      for (const page of to) {
        const lines = await page.locator('.activity li', { hasText: `${title}` }).allInnerTexts()
        expect(new Set(lines).size, title).toBe(lines.length)
      }
    }
    await tell('To all windows', pages)
    // When the window with the stream closes, another window continues it.
    const rest = pages.slice(1)
    await first.close()
    await tell('After the first', rest)
    await rest[3]!.getByRole('button', { name: 'Stop all' }).click()
    await rest[3]!.keyboard.press('Enter')
    for (const page of rest) await page.getByRole('button', { name: 'Resume all' }).waitFor()
    await team.client.go()
    // The dialog that halted everything does not reopen by itself.
    await rest[3]!.getByRole('button', { name: 'Stop all' }).waitFor()
    expect(await rest[3]!.getByRole('dialog').count()).toBe(0)
    await context.close()
  })

  it('closes the stream of a terminal while its window is hidden, and reopens it', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await visit(page, 'agents/Worker')
    await page.getByRole('button', { name: 'Take over' }).waitFor()
    const isEnded = page.waitForEvent('requestfailed', (request) =>
      request.url().endsWith('/terminal/events'),
    )
    const hide = (isHidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, 'hidden', { get: () => value, configurable: true })
        document.dispatchEvent(new Event('visibilitychange'))
      }, isHidden)
    await hide(true)
    await isEnded
    const isBack = page.waitForRequest((request) => request.url().endsWith('/terminal/events'))
    await hide(false)
    await isBack
    await window.context.close()
  })

  it('retries a terminal that could not be opened at first', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await page.route('**/terminal/events', (route) => route.abort(), { times: 1 })
    await visit(page, 'agents/Worker')
    await page.getByRole('button', { name: 'Take over' }).waitFor()
    await window.context.close()
  })

  it('says when the service does not answer a stop', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await page.getByText('live', { exact: true }).waitFor()
    await page.route('**/api/v1/halt', () => {})
    await page.clock.install()
    await page.getByRole('button', { name: 'Stop all' }).click()
    await page.keyboard.press('Enter')
    await page.clock.fastForward(21_000)
    await page.getByText('does not answer').waitFor()
    await window.context.close()
  })

  it('holds back questions while somebody types, and then shows them one by one (S2.16)', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await page.getByText('live', { exact: true }).waitFor()
    await page.keyboard.press('c')
    await page.getByRole('dialog', { name: 'Write a message' }).waitFor()
    for (const text of ['fifth thing', 'sixth thing']) await question(text)
    await until(async () => (await page.title()).startsWith('(2)'))
    expect(await page.getByRole('dialog', { name: 'Worker asks' }).count()).toBe(0)
    await page.keyboard.press('Escape')
    for (const text of ['fifth thing', 'sixth thing']) {
      const dialog = page.getByRole('dialog', { name: 'Worker asks' }).filter({ hasText: text })
      await dialog.getByRole('button', { name: 'Answer', disabled: false }).waitFor()
      await page.keyboard.press('1')
      await dialog.waitFor({ state: 'detached' })
    }
    expect([await stateOf('fifth thing'), await stateOf('sixth thing')]).not.toContain('open')
    await window.context.close()
  })

  it('refuses to send a message to an unknown agent', async () => {
    const window = await openWindow(browser)
    const page = await enter(window, await team.link())
    await page.keyboard.press('c')
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('To').fill('Master')
    await dialog.getByLabel('Message').fill('meant for another')
    await dialog.getByLabel('To').fill('Mastermind')
    await dialog.getByRole('button', { name: 'Send' }).click()
    expect(await dialog.getByLabel('To').evaluate((field: HTMLInputElement) => field.validity.valid)).toBe(
      false,
    )
    await page.waitForTimeout(300)
    const sent = (await team.client.messages({ agent: 'Master' })).messages
    expect(sent.some(({ content }) => content.includes('meant for another'))).toBe(false)
    await dialog.getByLabel('To').fill('master')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await dialog.waitFor({ state: 'detached' })
    await window.context.close()
  })
})
