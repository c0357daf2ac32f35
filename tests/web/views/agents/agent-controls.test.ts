import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { canBrowse, type Window } from '../../browser.ts'
import { useControlRoom } from '../../control-room.ts'
import { until, visit } from '../../page.ts'
import { startTeam, type TestTeam } from '../../team.ts'

describe.skipIf(!canBrowse)('the controls of an agent', { timeout: 90_000 }, () => {
  let team: TestTeam
  let window: Window
  let page: Page

  const { open } = useControlRoom(async () => {
    team = await startTeam(
      { Worker: { script: [{ on: { text: 'Title: Think' }, after_ms: 60_000, say: 'Too late.' }] } },
      { agents: { Outside: {} }, limits: { rate: 'off' } },
    )
    return team
  })
  beforeAll(async () => {
    window = await open()
    page = window.page
  })
  beforeEach(async () => {
    await visit(page, 'agents/Worker')
    await page.getByRole('heading', { level: 1, name: 'Worker' }).waitFor()
  })
  afterAll(() => expect(window.complaints).toEqual([]))

  const button = (name: string, disabled = false) =>
    page.getByRole('main').getByRole('button', { name, exact: true, disabled })
  const press = async (name: string) => await button(name).click()
  const becomes = (state: string) => until(async () => (await team.stateOf('Worker')) === state)
  const act = (action: string) => team.client.command({ type: 'request_action', action, target: 'Worker' })
  const reasonOf = (name: string) => button(name, true).getAttribute('aria-description')
  const startedTimes = async () => {
    let times = 0
    for await (const { type, data } of team.client.audit({ agent: 'Worker', type: 'session' }))
      if (type === 'session.changed' && data.session === 'initializing') times += 1
    return times
  }

  it('pause and resume it; deliveries wait while it is paused (S1.24)', async () => {
    await press('Pause')
    await button('Resume').waitFor()
    await becomes('paused')
    const receipt = await team.client.command({
      ...{ type: 'send_message', to: 'Worker', title: 'Waits', content: 'For a while' },
    })
    const id = receipt.status === 'delivered' ? receipt.message_id : ''
    await until(async () => /paused/.test((await team.client.message(id)).waits_for ?? ''))
    await press('Resume')
    await button('Pause').waitFor()
    await until(async () => (await team.client.message(id)).delivery === 'read')
  })

  it('stop it and start it again, also while it is paused', async () => {
    await press('Stop')
    await becomes('exited')
    await button('Start').waitFor()
    expect(await button('Stop').count()).toBe(0)
    await act('pause_session')
    await button('Resume').waitFor()
    await press('Start')
    await button('Stop').waitFor()
    await page.getByRole('button', { name: 'Take over' }).waitFor()
    await press('Resume')
    await becomes('idle')
  })

  it('start a new conversation with it', async () => {
    const before = await startedTimes()
    await press('Reset')
    await until(async () => (await startedTimes()) > before)
    await becomes('idle')
  })

  it('interrupt it while it is working, also after a pause', async () => {
    await team.client.command({ type: 'send_message', to: 'Worker', title: 'Think', content: 'Long.' })
    await becomes('busy')
    await press('Pause')
    await becomes('paused')
    await press('Interrupt')
    await until(async () => {
      for await (const { type, actor } of team.client.audit({ agent: 'Worker', type: 'session' }))
        if (/interrupted$/.test(type) && actor === 'operator') return true
      return false
    })
    await press('Resume')
    await button('Pause').waitFor()
  })

  it('explain why an action is not possible: nothing to interrupt, halted, not run by Orchub', async () => {
    await act('reset_session')
    await becomes('idle')
    await button('Interrupt', true).waitFor()
    expect(await reasonOf('Interrupt')).toMatch(/is not working/)
    // The keyboard reaches the button and its reason; pressing it does nothing.
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.method() === 'POST') asked.push(request.url())
    })
    await button('Interrupt', true).focus()
    await page.keyboard.press('Enter')
    await page.waitForTimeout(200)
    expect(asked).toEqual([])
    await press('Stop')
    await becomes('exited')
    await team.client.halt({ reason: 'to see' })
    await button('Start', true).waitFor()
    expect(await reasonOf('Start')).toMatch(/Everything is stopped/)
    await team.client.go()
    await press('Start')
    await becomes('idle')
    await visit(page, 'agents/Outside')
    await page.getByRole('heading', { level: 1, name: 'Outside' }).waitFor()
    await button('Start', true).waitFor()
    expect(await reasonOf('Start')).toMatch(/Orchub doesn't run Outside/)
    expect(await reasonOf('Reset')).toMatch(/Orchub doesn't run Outside/)
    await button('Pause').waitFor()
  })

  it('work before the possible actions are loaded, and report if they cannot be loaded', async () => {
    const asked = Promise.withResolvers<void>()
    await page.route('**/api/v1/agents/Worker/actions', async (route) => {
      await asked.promise
      await route.fulfill({ status: 400, json: { code: 'CONFLICT', message: 'The actions are unknown' } })
    })
    try {
      await page.reload()
      await press('Pause')
      await becomes('paused')
      asked.resolve()
      await page.getByRole('alert').getByText('The actions are unknown').waitFor()
      await press('Resume')
      await becomes('idle')
    } finally {
      asked.resolve()
      await page.unroute('**/api/v1/agents/Worker/actions')
    }
    // The browser logs the refused request itself.
    const others = window.complaints.filter((text) => !text.endsWith('/api/v1/agents/Worker/actions'))
    window.complaints.splice(0, Number.POSITIVE_INFINITY, ...others)
  })
})
