import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { canBrowse } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

describe.skipIf(!canBrowse)('the control room, when something goes wrong', { timeout: 90_000 }, () => {
  let team: TestTeam
  let worker: Client

  const { open } = useControlRoom(async () => {
    team = await startTeam(
      {
        Master: { script: [] },
        Worker: { more: { parent: 'Master', permissions: { terminate_agent: 'ask' } }, script: [] },
      },
      { limits: { rate: 'off', hops: 'off', ping_pong: 'off' } },
    )
    worker = await team.clientOf('Worker')
    return team
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
    const { page } = await open()
    await page.route(/assets\/audit-.*\.js/, (route) => route.abort())
    await visit(page, 'audit')
    await page.getByText('could not be shown').waitFor()
    await page.getByRole('button', { name: 'Stop all' }).waitFor()
    await page.unrouteAll()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('heading', { name: 'Audit' }).waitFor()
  })

  it('keeps the rest of the page when a view fails, and shows the next view', async () => {
    const { page } = await open()
    await page.route('**/api/v1/rules/matrix*', (route) => route.fulfill({ json: {} }))
    await visit(page, 'rules')
    await page.getByRole('button', { name: 'Try again' }).waitFor()
    await visit(page, 'metrics')
    await page.getByRole('heading', { name: 'Metrics' }).waitFor()
  })

  it('selects no request by itself when the addressed one is gone; j continues', async () => {
    for (const text of ['third thing', 'fourth thing']) await question(text)
    const { page } = await open()
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
  })

  it('closes the stream of a terminal while its window is hidden, and reopens it', async () => {
    const { page } = await open()
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
  })

  it('retries a terminal that could not be opened at first', async () => {
    const { page } = await open()
    await page.route('**/terminal/events', (route) => route.abort(), { times: 1 })
    await visit(page, 'agents/Worker')
    await page.getByRole('button', { name: 'Take over' }).waitFor()
  })

  it('says when the service does not answer a stop', async () => {
    const { page } = await open()
    await page.getByText('live', { exact: true }).waitFor()
    await page.route('**/api/v1/halt', () => {})
    await page.clock.install()
    await page.getByRole('button', { name: 'Stop all' }).click()
    await page.keyboard.press('Enter')
    await page.clock.fastForward(21_000)
    await page.getByText('does not answer').waitFor()
  })

  it('holds back questions while somebody types, and then shows them one by one (S2.16)', async () => {
    const { page } = await open()
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
  })

  it('refuses to send a message to an unknown agent', async () => {
    const { page } = await open()
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
  })
})
