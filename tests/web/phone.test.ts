import type { Page } from 'playwright-core'
import { describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { canBrowse } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { tooWide, until, violations, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

/** A long text without a place to break it. */
const WORD = 'averylongwordwithoutanyspaces'.repeat(8)
const NAME = `Agent${'WithALongName'.repeat(4)}`

type Prepare = (page: Page) => Promise<unknown>

/** Changes an answer of the real service on its way to the page. */
const changed =
  (paths: readonly string[], change: (body: never) => object): Prepare =>
  (page) =>
    page.route(
      ({ pathname }) => paths.includes(pathname),
      async (route) => {
        // The page may have been closed, or the request withdrawn.
        const answer = await route.fetch().catch(() => undefined)
        if (answer === undefined) return
        await route
          .fulfill({ response: answer, json: change((await answer.json()) as never) })
          .catch(() => undefined)
      },
    )

const ofAgents = (more: object) =>
  changed(['/api/v1/state', '/api/v1/agents'], ({ agents, ...rest }: { agents: object[] }) => ({
    ...rest,
    agents: agents.map((agent) => ({ ...agent, ...more })),
  }))

const all =
  (...parts: Prepare[]): Prepare =>
  (page) =>
    Promise.all(parts.map((part) => part(page)))

/** Each case combines several contents, because the check names the element that is too wide. */
const CONTENTS: Record<string, Prepare> = {
  'a stream that does not open, and long words': all(
    (page) => page.route('**/api/v1/events*', () => {}),
    ofAgents({ role: WORD, current_task: WORD, status: WORD, waits_for: WORD, program: WORD }),
  ),
  'a stream that is lost, an unforeseen state, and large numbers': all(
    (page) => page.route('**/api/v1/events*', (route) => route.abort()),
    changed(['/api/v1/state', '/api/v1/agents'], ({ agents, ...rest }: { agents: { name: string }[] }) => ({
      ...rest,
      agents: agents.map((agent) => ({
        ...{ ...agent, session: WORD.slice(0, 60), spent: 123_456_789.12 },
        context: { level: 'critical', percent: 100, model: WORD },
      })),
      deliveries: agents.flatMap(({ name }) =>
        ['queued', 'uncertain'].map((state) => ({ agent: name, state, count: 123_456_789 })),
      ),
    })),
  ),
  'a stop with a long reason, and long questions': all(
    changed(['/api/v1/state'], ({ agents, ...rest }: { agents: object[] }) => ({
      ...{ ...rest, agents: agents.map((agent) => ({ ...agent, session: 'waiting_input' })) },
      halt: { by: NAME, at: '2026-01-01T00:00:00.000Z', reason: WORD },
    })),
    changed(['/api/v1/human-requests'], ({ requests }: { requests: object[] }) => ({
      requests: requests.map((request) => ({
        ...{ ...request, question: WORD, reason: WORD, task_id: WORD, approvals: [{ by: WORD }], quorum: 2 },
      })),
    })),
  ),
  faults: (page) =>
    page.route('**/api/v1/{state,tasks,messages,runs,figures}*', (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'INTERNAL', message: WORD, hint: WORD } } }),
    ),
}

describe.skipIf(!canBrowse)('the control room in a narrow window', { timeout: 90_000 }, () => {
  let team: TestTeam
  let worker: Client

  const { open } = useControlRoom(async () => {
    team = await startTeam(
      {},
      {
        agents: { Master: {}, [NAME]: { parent: 'Master', permissions: { terminate_agent: 'ask' } } },
        limits: { rate: 'off' },
      },
    )
    worker = await team.clientOf(NAME)
    await team.client.command({ type: 'send_message', to: NAME, title: WORD, content: WORD })
    await worker.command({ type: 'send_message', to: 'Master', title: WORD, content: WORD })
    await worker.command({ type: 'request_user_input', question: WORD, choices: [WORD, 'no'] })
    await team.client.command({ type: 'delegate', to: NAME, task: WORD })
    await worker.command({
      ...{ type: 'request_action', action: 'terminate_agent', target: 'Master', reason: WORD },
    })
    await until(async () => (await team.client.humanRequests()).requests.length === 2)
    return team
  })

  const PLACES = [
    ...['team', 'team?as=graph', 'inbox', `agents/${NAME}`, `agents/${NAME}?tab=mail&message=msg_1`],
    ...['tasks', 'tasks/task_1', 'conversations', 'conversations/msg_1', 'conversations?as=sequence'],
    ...[`rules?from=${NAME}&to=Master`, 'audit', 'audit/1', 'metrics', 'runs', 'github'],
  ]

  it.each(Object.entries(CONTENTS))(
    'is never wider than the window with %s (S2.16)',
    async (what, prepare) => {
      const { page } = await open({ theme: 'light', width: 360, height: 740, prepare })
      if (what.includes('lost')) await page.getByText('connection lost').waitFor()
      if (what.includes('not open')) await page.getByText('connecting').waitFor()
      for (const place of PLACES) {
        await visit(page, place)
        await page.locator('h1, .fault').first().waitFor()
        expect(await tooWide(page), `${place} while loading`).toEqual([])
        await page.locator('main .loading').waitFor({ state: 'detached' })
        expect(await tooWide(page), `${place} when loaded`).toEqual([])
      }
    },
  )

  it.each([
    ['dark', 1280],
    ['light', 360],
  ] as const)('has dialogs that fit, and pass axe, in %s at %i px', async (theme, width) => {
    const { page } = await open({ theme, width, height: 740 })
    const dialog = page.getByRole('dialog')
    const fits = async (name: string) => {
      await dialog.waitFor()
      expect(await tooWide(page), name).toEqual([])
      expect(await violations(page), name).toEqual([])
      await page.keyboard.press('Escape')
      await dialog.waitFor({ state: 'detached' })
    }
    await page
      .locator('header.top')
      .getByRole('button', { name: /message/i })
      .click()
    await fits('compose')
    await page.getByRole('button', { name: 'Stop all' }).click()
    await fits('stop')
    await page.keyboard.press('?')
    await fits('keyboard')
    await visit(page, `agents/${NAME}`)
    await page.getByRole('button', { name: 'Decide' }).first().click()
    await fits('a question')
    await page.getByRole('button', { name: 'Decide' }).last().click()
    await page.keyboard.press('m')
    await dialog.getByRole('button', { name: 'Approve with edits' }).waitFor()
    await fits('a change')
    await page.locator('body').click({ position: { x: 5, y: 400 } })
    await worker.command({ type: 'request_user_input', question: `${WORD} once more`, choices: [WORD] })
    await fits('a question that arrives')
  })
})
