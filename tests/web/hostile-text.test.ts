import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import { insertAction, insertWork, keepDelivery } from '../../src/github/store.ts'
import { showInvisible } from '../../web/src/components/exact-text.ts'
import { canBrowse, type Window } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'
import { CORPUS, harmIn, recordReports } from './xss-corpus.ts'

describe.skipIf(!canBrowse)('hostile text in the control room', { timeout: 90_000 }, () => {
  let team: TestTeam
  let window: Window
  let page: Page

  const { open } = useControlRoom(async () => {
    team = await startTeam(
      {
        Master: { script: [] },
        Worker: { more: { parent: 'Master', permissions: { terminate_agent: 'ask' } }, script: [] },
      },
      { limits: { rate: 'off', hops: 'off', ping_pong: 'off', pair_rate: 'off' } },
    )
    return team
  })
  beforeAll(async () => {
    window = await open({ prepare: recordReports })
    page = window.page
  })

  /** Every text an agent can set: status, messages, questions, actions, tasks, reports, proposals for GitHub. */
  async function sayEverywhere(hostile: string, number: number) {
    const worker = await team.clientOf('Worker')
    const master = await team.clientOf('Master')
    await worker.command({ type: 'update_status', status: 'working', current_task: hostile })
    await worker.command({ type: 'send_message', to: 'Master', title: hostile, content: hostile })
    const asked = await worker.command({
      ...{ type: 'request_user_input', question: hostile, context: hostile },
      choices: [hostile, 'no'],
    })
    expect(asked, JSON.stringify(asked)).toMatchObject({ status: 'ok' })
    const held = await worker.command({
      ...{ type: 'request_action', action: 'terminate_agent', target: 'Master', reason: hostile },
    })
    expect(held, JSON.stringify(held)).toMatchObject({ status: 'held' })
    const delegated = await master.command({ type: 'delegate', to: 'Worker', task: hostile })
    const details = delegated.status === 'ok' ? (delegated.details ?? {}) : {}
    const task = String(details.task_id)
    await worker.command({ type: 'report', status: 'failed', in_response_to: task, result: hostile })
    await team.orchub.engine.store.write(async (tx) => {
      const id = `delivery-${number}`
      await keepDelivery(tx, { id, event: hostile, payload: '{}' })
      await insertWork(tx, {
        ...{
          id: `${id}/triage`,
          delivery: id,
          role: 'triage',
          agent: 'Worker',
          repository: 'o/r',
          number: 1,
        },
        ...{ state: 'delegated', task: 1, after: null, needs: 'any', attempts: 0, delegation: '{}' },
      })
      await insertAction(tx, {
        ...{ key: `key-${number}`, work: `${id}/triage`, agent: 'Worker', repository: 'o/r', number: 1 },
        ...{ action: JSON.stringify({ kind: 'label', number: 1, label: hostile }), confidence: null },
        ...{ rationale: hostile, state: 'failed', request: null, note: hostile },
      })
    })
    return task
  }

  it.each(CORPUS.map((text, index) => [text, index] as const))(
    'is shown as text wherever an agent can write it: %s',
    async (hostile, number) => {
      const task = await sayEverywhere(hostile, number)
      const mail = (await team.client.messages({ agent: 'Worker' })).messages.find(
        ({ title }) => title === hostile,
      )!
      for (const place of [
        'team?as=list',
        'team?as=graph',
        'inbox',
        'agents/Worker',
        `agents/Worker?tab=mail&message=${mail.id}`,
        `conversations/${mail.id}`,
        'conversations?as=thread',
        `tasks/${task}?show=all`,
        'audit',
        `github/key-${number}`,
        `github/delivery-${number}?show=events`,
      ]) {
        await visit(page, place)
        await until(async () => (await page.getByText(hostile, { exact: false }).count()) > 0).catch(() => {
          throw new Error(`it is not to be seen in ${place}`)
        })
        if (place === 'inbox') {
          const reason = page.locator('.fields pre[data-name=reason]')
          expect(await reason.first().innerText()).toBe(showInvisible(hostile))
        }
        expect(await harmIn(page), place).toEqual([])
      }
      expect(window.complaints).toEqual([])
      // Free the agent for the next case.
      const ended = await team.client.command({ type: 'task_action', task_id: task, action: 'cancel' })
      expect(ended).toMatchObject({ status: 'ok' })
      for (const { id, decisions } of (await team.client.humanRequests()).requests) {
        const isQuestion = decisions.includes('answer')
        await team.client.decide(id, {
          ...(isQuestion ? { decision: 'answer', comment: 'no', insist: true } : { decision: 'reject' }),
        })
      }
    },
  )
})
