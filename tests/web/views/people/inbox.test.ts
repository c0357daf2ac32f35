import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import { canBrowse } from '../../browser.ts'
import { useControlRoom } from '../../control-room.ts'
import { until, violations, visit } from '../../page.ts'
import { say, startTeam, type TestTeam } from '../../team.ts'

const ASK =
  '<orc-command name="request_user_input" choices="Vienna, Graz" context="The train leaves from there">Where do you start?</orc-command>'

/** Runs in the page: presses a key the moment a dialog opens. */
function pressAtOnce() {
  return new Promise<void>((resolve) => {
    const watching = new MutationObserver(() => {
      if (document.querySelector('[role=dialog]') === null) return
      watching.disconnect()
      dispatchEvent(new KeyboardEvent('keydown', { key: '1' }))
      resolve()
    })
    watching.observe(document.body, { childList: true, subtree: true })
  })
}

describe.skipIf(!canBrowse)('questions in the control room', { timeout: 90_000 }, () => {
  let team: TestTeam

  const { open } = useControlRoom(async () => {
    team = await startTeam(
      {
        Master: {
          more: { role: 'plans' },
          script: [
            { on: { text: 'Title: Ask' }, after_ms: 50, say: ASK },
            { on: { text: 'Vienna' }, after_ms: 50, say: say('Worker', 'From Vienna', 'I was told Vienna.') },
          ],
        },
        Worker: {
          more: { parent: 'Master', permissions: { terminate_agent: 'ask' } },
          script: [
            {
              on: { text: 'Title: End it' },
              after_ms: 50,
              say: '<orc-command name="request_action" action="terminate_agent" target="Other" reason="its work is done"/>',
            },
          ],
        },
        Other: { more: { parent: 'Master' }, script: [] },
      },
      { limits: { rate: 'off', hops: 'off', ping_pong: 'off' } },
    )
    return team
  })

  const send = (to: string, title: string) =>
    team.client.command({ type: 'send_message', to, title, content: 'Please.' })

  it('open as a dialog; the answer reaches the waiting agent, which continues (S2.16)', async () => {
    const { page, complaints } = await open()
    await visit(page, 'audit')
    await page.getByRole('heading', { name: 'Audit' }).waitFor()
    const pressed = page.evaluate(pressAtOnce)
    await send('Master', 'Ask')
    const dialog = page.getByRole('dialog', { name: 'Master asks' })
    await dialog.getByText('Where do you start?').waitFor()
    // A request that appears by itself ignores keys at first: they may be meant for something else.
    await pressed
    await dialog.getByRole('button', { name: 'Answer', disabled: false }).waitFor()
    // Fixed choices leave no room for other text.
    expect(await dialog.getByRole('textbox').count()).toBe(0)
    expect(await violations(page)).toEqual([])
    await page.keyboard.press('1')
    await dialog.waitFor({ state: 'detached' })
    await until(async () =>
      (await team.client.messages({ agent: 'Worker' })).messages.some(({ title }) => title === 'From Vienna'),
    )
    const [request] = (await team.client.humanRequests({ state: 'all' })).requests
    await visit(page, `inbox/${request!.id}`)
    await page.getByText('by operator', { exact: false }).first().waitFor()
    expect(complaints).toEqual([])
  })

  it('are approved on a phone-sized window, and another window shows it at once', async () => {
    const [{ page: small }, { page: large }] = [await open({ width: 360, height: 740 }), await open()]
    await visit(small, 'inbox')
    await visit(large, 'inbox')
    await send('Worker', 'End it')
    const card = small.getByRole('article', { name: /asked by Worker/ })
    await card.getByText('terminate_agent').first().waitFor()
    await large.getByRole('article', { name: /asked by Worker/ }).waitFor()
    expect(await small.title()).toMatch(/^\(1\)/)
    await card.getByRole('button', { name: 'Approve' }).click()
    await card.waitFor({ state: 'detached' })
    await large.getByRole('article', { name: /asked by Worker/ }).waitFor({ state: 'detached' })
    await until(async () => (await team.stateOf('Other')) === 'exited')
  })

  it("show a proposal in full, and a person's change as a diff", async () => {
    const worker = await team.clientOf('Worker')
    const lines = Array.from({ length: 60 }, (_, index) => `line ${index} of the reason`)
    await team.client.command({ type: 'request_action', action: 'spawn_agent', target: 'Other' })
    await until(async () => (await team.stateOf('Other')) === 'idle')
    const receipt = await worker.command({
      type: 'request_action',
      action: 'terminate_agent',
      target: 'Other',
      reason: lines.join('\n'),
    })
    expect(receipt.status).toBe('held')
    await until(async () => (await team.client.humanRequests()).requests.length === 1)
    const { page } = await open()
    await visit(page, 'inbox')
    const card = page.getByRole('article', { name: /asked by Worker/ })
    await card.getByText(lines.at(-1)!, { exact: false }).first().waitFor()
    const shown = await card.innerText()
    for (const line of lines) expect(shown).toContain(line)
    await card.getByRole('button', { name: 'Edit', disabled: false }).waitFor()
    await page.keyboard.press('m')
    await card
      .locator('.edit label', { hasText: /^reason/ })
      .locator('textarea')
      .fill('because I say so')
    await card.getByRole('button', { name: 'Approve with edits' }).click()
    await card.waitFor({ state: 'detached' })
  })

  it('trigger a browser notification while the page is hidden, which opens the inbox', async () => {
    const hide = async (it: Page) => {
      await it.context().grantPermissions(['notifications'], { origin: team.url })
      await it.addInitScript(() => {
        const recorded = window as unknown as { notified: string[]; Notification: unknown }
        recorded.notified = []
        const Fake = function (this: object, title: string) {
          recorded.notified.push(title)
        } as unknown as { permission: string }
        Fake.permission = 'granted'
        recorded.Notification = Fake
        Object.defineProperty(document, 'hidden', { get: () => true })
      })
    }
    const { page } = await open({ prepare: hide })
    await page.getByText('live', { exact: true }).waitFor()
    await send('Master', 'Ask')
    await until(() =>
      page.evaluate(() => (window as unknown as { notified: string[] }).notified.includes('Master asks')),
    )
    expect(await page.title()).toMatch(/^\(1\)/)
    const [request] = (await team.client.humanRequests()).requests
    await team.client.decide(request!.id, { decision: 'answer', comment: 'Graz', insist: true })
  })
})
