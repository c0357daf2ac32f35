import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, describe, expect, it } from 'vitest'
import { canBrowse } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

const REFUSED = /^vera (may read everything but change nothing|may not decide on req_\d+)\. The role of vera/
const PLAN = `agents: { first: { command: "echo it > outbox/x.txt; echo Done. > outbox/summary.md" } }`

describe.skipIf(!canBrowse)('a viewer', { timeout: 90_000 }, () => {
  let team: TestTeam
  let folder: string
  let run: string
  let task: string
  /** A question, and an action that waits for approval. */
  let question: string
  let action: string

  const { open } = useControlRoom(async () => {
    folder = mkdtempSync(join(tmpdir(), 'orchub-roles-'))
    mkdirSync(join(folder, 'plan'))
    team = await startTeam(
      {
        Master: { script: [] },
        Worker: { more: { parent: 'Master', permissions: { terminate_agent: 'ask' } }, script: [] },
      },
      {
        ...{ limits: { rate: 'off' as const } },
        people: { vera: { role: 'viewer' }, mo: { role: 'moderator' } },
      },
    )
    const clientOf = async (name: string) => await team.clientOf(name)
    const worker = await clientOf('Worker')
    const delegated = await (await clientOf('Master')).command({
      type: 'delegate',
      to: 'Worker',
      task: 'Dig',
    })
    task = delegated.status === 'ok' ? String(delegated.details?.task_id) : ''
    run = (await team.client.startRun({ plan: PLAN, folder: join(folder, 'plan') })).run_id
    await until(async () => (await team.client.run(run)).state !== 'running')
    await worker.command({ type: 'request_user_input', question: 'Where to?', choices: ['left', 'right'] })
    await worker.command({ type: 'request_action', action: 'terminate_agent', target: 'Master' })
    const { requests } = await team.client.humanRequests()
    question = requests.find(({ kind }) => kind === 'input')!.id
    action = requests.find(({ action: proposed }) => proposed !== undefined)!.id
    return team
  })
  afterAll(() => {
    rmSync(folder, { recursive: true, force: true })
  })

  const nothingChanged = async () => {
    const { agents, halt } = await team.client.state()
    expect(agents.map(({ name, session }) => [name, session])).toEqual([
      ['Master', 'idle'],
      ['Worker', expect.stringMatching(/idle|busy/)],
    ])
    expect(halt).toBeUndefined()
    for (const id of [question, action]) expect((await team.client.humanRequest(id)).state).toBe('open')
    expect((await team.client.task(task)).ended_at).toBeUndefined()
    expect((await team.client.run(run)).round).toBe(1)
    const { messages } = await team.client.messages({ agent: 'Master' })
    expect(messages.some(({ content }) => content === 'from a viewer')).toBe(false)
  }

  it.each(['vera', 'mo'])(
    'cannot change anything, because the service refuses every action: %s (S2.16)',
    async (person) => {
      const { page } = await open({ person })
      const command = (body: object) => ['POST', '/api/v1/commands', body] as const
      const tries: (readonly [method: string, path: string, body?: object])[] = [
        ['POST', `/api/v1/human-requests/${question}/verdict`, { decision: 'answer', comment: 'left' }],
        ['POST', `/api/v1/human-requests/${action}/verdict`, { decision: 'approve' }],
        ['POST', `/api/v1/human-requests/${action}/verdict`, { decision: 'reject' }],
        command({ type: 'send_message', to: 'Master', title: 'x', content: 'from a viewer' }),
        command({ type: 'request_action', action: 'pause_session', target: 'Master' }),
        command({ type: 'request_action', action: 'terminate_agent', target: 'Master' }),
        command({ type: 'task_action', task_id: task, action: 'cancel' }),
        command({ type: 'delegate', to: 'Worker', task: 'from a viewer' }),
        ['POST', '/api/v1/asks', { question: 'from a viewer' }],
        ['POST', '/api/v1/halt', {}],
        ['POST', '/api/v1/go', {}],
        ['POST', '/api/v1/stop', { agents: 'end' }],
        ['POST', '/api/v1/agents/Master/interrupt', {}],
        ['POST', '/api/v1/agents/Master/terminal/take-over', {}],
        ['DELETE', '/api/v1/agents/Master/terminal/take-over'],
        ['POST', '/api/v1/agents/Master/terminal/keys', { keys: 'x' }],
        ['POST', '/api/v1/runs', { plan: PLAN, folder }],
        ['POST', `/api/v1/runs/${run}/resume`, {}],
        ['POST', `/api/v1/runs/${run}/cancel`, {}],
        ['POST', '/api/v1/tokens', { agent: 'Master' }],
        ['DELETE', '/api/v1/tokens/Master'],
        ['POST', '/api/v1/logins', {}],
      ]
      const answers = await page.evaluate(async (all) => {
        const headers = {
          'content-type': 'application/json',
          'x-orc-session': localStorage.getItem('orchub.session')!,
        }
        const got: { status: number; body: string }[] = []
        for (const [method, path, body] of all) {
          const init = body === undefined ? {} : { body: JSON.stringify(body) }
          const answer = await fetch(path, { method, headers, ...init })
          got.push({ status: answer.status, body: await answer.text() })
        }
        return got
      }, tries)
      for (const [index, { status, body }] of answers.entries())
        expect([status, body], tries[index]!.join(' ')).toEqual([403, expect.stringMatching(/FORBIDDEN/)])
      await nothingChanged()
    },
  )

  it('sees a read-only page without actions or keys', async () => {
    const { page } = await open({ person: 'vera' })
    await page.getByText('read only').waitFor()
    const changing: string[] = []
    page.on('request', (request) => {
      if (request.method() !== 'GET') changing.push(request.url())
    })
    for (const id of [question, action]) {
      await visit(page, `inbox/${id}`)
      const card = page.getByRole('article', { name: new RegExp(`^${id},`) })
      await card.getByText('You can view this request, but not decide it.').waitFor()
      expect(await card.getByRole('button').count()).toBe(0)
      await page.waitForTimeout(700)
      for (const key of ['a', 'x', 'm', '1', 'c', 'Enter']) await page.keyboard.press(key)
    }
    expect(await page.getByRole('dialog').count()).toBe(0)
    for (const [place, title] of [
      [`tasks/${task}`, 'Tasks'],
      [`runs/${run}`, 'plan'],
      ['agents/Master', 'Master'],
    ] as const) {
      await visit(page, place)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
      const names = /Take over|Cancel|Resume|Take over|Start|Pause|Reset|Stop|Interrupt/
      expect(await page.getByRole('button', { name: names }).count(), place).toBe(0)
    }
    expect(changing).toEqual([])
    await nothingChanged()
  })

  /** Opens a page that believes it belongs to an operator: the role changed meanwhile, or somebody tampered with it. */
  async function openOperatorPage(): Promise<Page> {
    const deceive = async (it: Page) => {
      await it.route('**/api/v1/me', async (route) => {
        const answer = await route.fetch()
        await route.fulfill({ json: { ...(await answer.json()), role: 'operator' } })
      })
      await it.route('**/api/v1/human-requests?*', async (route) => {
        const { requests } = (await (await route.fetch()).json()) as { requests: { kind: string }[] }
        const decisions = (kind: string) => (kind === 'input' ? ['answer'] : ['approve', 'reject'])
        await route.fulfill({
          json: { requests: requests.map((one) => ({ ...one, decisions: decisions(one.kind) })) },
        })
      })
    }
    return (await open({ person: 'vera', prepare: deceive })).page
  }

  it('sees why an action was refused if the page still offers it', async () => {
    const page = await openOperatorPage()
    await page.evaluate(recordNotes)
    let seen = 0
    const refused = async () => {
      const notes = () => page.evaluate(() => (window as unknown as { notes: string[] }).notes)
      await until(async () => (await notes()).length > seen)
      expect((await notes()).at(-1)).toMatch(REFUSED)
      seen = (await notes()).length
    }
    const press = async (name: string, where = page.getByRole('main')) => {
      await where.getByRole('button', { name, disabled: false }).first().click()
      await refused()
    }
    await visit(page, `inbox/${question}`)
    const card = (id: string) => page.getByRole('article', { name: new RegExp(`^${id},`) })
    await card(question).getByRole('radio', { name: 'left' }).check()
    await press('Answer', card(question))
    await visit(page, `inbox/${action}`)
    await press('Reject', card(action))
    await press('Approve', card(action))
    await visit(page, 'agents/Master')
    await press('Pause')
    await press('Take over')
    await visit(page, `tasks/${task}`)
    await press('Cancel task')
    await visit(page, `runs/${run}`)
    await press('Resume run')
    await page.getByRole('button', { name: 'Stop all' }).click()
    await page.keyboard.press('Enter')
    await refused()
    await nothingChanged()
  })
})

/** Runs in the page: records its notifications, which disappear after a few seconds. */
function recordNotes() {
  const recorded = window as unknown as { notes: string[] }
  recorded.notes = []
  new MutationObserver((changes) => {
    for (const { addedNodes } of changes)
      for (const node of addedNodes)
        if (node instanceof HTMLElement && node.matches('.note')) recorded.notes.push(node.innerText)
  }).observe(document.body, { childList: true, subtree: true })
}
