import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../src/client/client.ts'
import { closeConduct, endDelivery, insertConduct, keepDelivery } from '../../src/github/store.ts'
import { canBrowse, type Window } from './browser.ts'
import { useControlRoom } from './control-room.ts'
import { until, visit } from './page.ts'
import { startTeam, type TestTeam } from './team.ts'

/** Prints a line, and continues once a file appears. */
const PLAN = `agents:
  first: { command: "echo the first line; while [ ! -f go ]; do sleep 0.05; done; echo the second line; while [ ! -f end ]; do sleep 0.05; done; echo it > outbox/x.txt; echo Done. > outbox/summary.md" }
`

describe.skipIf(!canBrowse)('open views of the control room', { timeout: 90_000 }, () => {
  let team: TestTeam
  let worker: Client
  let folder: string
  let window: Window
  let page: Page

  const { open } = useControlRoom(async () => {
    folder = mkdtempSync(join(tmpdir(), 'orchub-live-'))
    mkdirSync(join(folder, 'plan'))
    team = await startTeam(
      {
        Master: { script: [] },
        Worker: {
          more: { parent: 'Master' },
          script: [
            { on: { text: 'Title: Talk' }, after_ms: 50, say: 'A word before.' },
            { on: { text: 'Title: Think' }, after_ms: 30_000, say: 'Too late.' },
          ],
        },
      },
      { people: { mo: { role: 'moderator' } }, limits: { rate: 'off', hops: 'off', ping_pong: 'off' } },
    )
    worker = await team.clientOf('Worker')
    return team
  })
  beforeAll(async () => {
    window = await open()
    page = window.page
    await page.getByText('live', { exact: true }).waitFor()
  })
  afterEach(() => expect(window.complaints).toEqual([]))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  const act = (action: string, target: string) =>
    team.client.command({ type: 'request_action', action, target })
  const show = async (place: string, heading: string) => {
    await visit(page, place)
    await page.getByRole('heading', { level: 1, name: heading }).waitFor()
  }
  const button = (name: string) => page.getByRole('main').getByRole('button', { name, exact: true })

  it('show what another person did: a paused agent, in the team and in its own view (S2.16)', async () => {
    await show('agents/Master', 'Master')
    await button('Pause').waitFor()
    await act('pause_session', 'Master')
    await button('Resume').waitFor()
    await show('team?as=list', 'Team')
    const row = page.getByRole('main').locator('a.line, a, li', { hasText: 'Master' }).first()
    await row.getByText('paused').waitFor()
    await act('resume_session', 'Master')
    await row.getByText('paused').waitFor({ state: 'detached' })
  })

  it('show a new delegated task and its result in every list of tasks', async () => {
    const master = await team.clientOf('Master')
    // Both lists share a query; the one opened first must not decide which events refresh it.
    for (const first of ['agents/Worker?tab=tasks', 'tasks?show=all']) {
      await show(first, first.startsWith('tasks') ? 'Tasks' : 'Worker')
      const delegated = await master.command({ type: 'delegate', to: 'Worker', task: `seen in ${first}` })
      const task = delegated.status === 'ok' ? String(delegated.details?.task_id) : ''
      const line = page.locator('a.line', { hasText: `seen in ${first}` })
      await line.waitFor()
      await worker.command({ type: 'report', status: 'failed', in_response_to: task, result: 'no' })
      await team.client.command({ type: 'task_action', task_id: task, action: 'cancel' })
      await line.getByText(/cancelled|failed/).waitFor()
    }
  })

  it('show the output of an attempt while it is printed', async () => {
    const { run_id: run } = await team.client.startRun({ plan: PLAN, folder: join(folder, 'plan') })
    await until(async () => (await team.client.run(run)).nodes[0]?.state === 'running')
    await visit(page, `runs/${run}?node=first&log=1`)
    const log = page.locator('pre.log')
    await log.getByText('the first line').waitFor()
    const { workspace } = (await team.client.run(run)).nodes[0]!
    writeFileSync(join(workspace, 'go'), '')
    await log.getByText('the second line').waitFor()
    expect((await team.client.run(run)).nodes[0]?.state).toBe('running')
    writeFileSync(join(workspace, 'end'), '')
    await page.getByRole('heading', { level: 2, name: 'first' }).waitFor()
    await page.locator('.aside').getByText('Done.').waitFor()
  })

  it('update the scrollback while it is open', async () => {
    await show('agents/Worker', 'Worker')
    await page.getByRole('button', { name: 'Scrollback' }).click()
    const log = page.getByRole('log')
    await log.waitFor()
    await team.client.takeTerminal('Worker')
    // No audit event reports typed keys.
    await team.client.typeKeys('Worker', { keys: 'typed by another' })
    await log.getByText('typed by another').waitFor()
    for (let key = 0; key < 'typed by another'.length; key++)
      await team.client.typeKeys('Worker', { keys: '\u007f' })
    await until(async () => !(await log.innerText()).includes('typed by another'))
    await team.client.releaseTerminal('Worker')
  })

  it('say why a message waits, until it is delivered', async () => {
    await team.client.takeTerminal('Worker')
    const receipt = await team.client.command({
      ...{ type: 'send_message', to: 'Worker', title: 'Held up', content: 'By a person' },
    })
    const id = receipt.status === 'delivered' ? receipt.message_id : ''
    await until(async () => (await team.client.message(id)).waits_for !== undefined)
    // The page may read the message before the runtime finds out why it has to wait, which no event reports.
    await page.route(
      `**/api/v1/messages/${id}`,
      async (route) => {
        const { waits_for: _, ...early } = (await (await route.fetch()).json()) as object & {
          waits_for?: string
        }
        await route.fulfill({ json: early })
      },
      { times: 1 },
    )
    await show(`agents/Worker?tab=mail&message=${id}`, 'Worker')
    await page
      .locator('.opened')
      .getByText(/Waiting: .*taken over/)
      .waitFor()
    await team.client.releaseTerminal('Worker')
    await page.locator('.opened').getByText('Waiting:').waitFor({ state: 'detached' })
    await page.locator('.opened').getByText('read', { exact: true }).waitFor()
  })

  it('show the rules and the prompt of a changed configuration', async () => {
    await show('rules?from=Worker&to=Master', 'Rules')
    await page
      .getByText(/decided by/)
      .first()
      .waitFor()
    const { engine } = team.orchub
    const config = engine.team().config
    const changed = {
      ...config,
      agents: config.agents.map((agent) =>
        agent.name === 'Worker' ? { ...agent, role: 'digs deep' } : agent,
      ),
    }
    await show('agents/Worker?tab=prompt', 'Worker')
    await page.locator('pre.prompt').waitFor()
    await engine.reload(changed)
    await engine.store.write((tx) =>
      tx.audit({ type: 'config.loaded', class: 'internal', actor: 'orchestrator', text: 'reloaded' }),
    )
    await page.locator('pre.prompt', { hasText: 'digs deep' }).waitFor()
    await page.locator('.head-note', { hasText: 'digs deep' }).waitFor()
  })

  it('show GitHub events and their outcome, which are not in the audit', async () => {
    const { store } = team.orchub.engine
    await show('github?show=events', 'GitHub')
    await store.write((tx) => keepDelivery(tx, { id: 'ping-1', event: 'ping', payload: '{}' }))
    const line = page.getByRole('main').locator('a', { hasText: 'ping' }).first()
    await line.getByText('waiting').waitFor()
    await store.write((tx) => endDelivery(tx, 'ping-1', 'ignored', 'no route matches ping'))
    await line.getByText('ignored').waitFor()
  })

  it("show a moderator's decision to other moderators only (S3.15)", async () => {
    const { store } = team.orchub.engine
    const flag = (id: string) =>
      store.write((tx) =>
        insertConduct(tx, {
          ...{ id, repository: 'o/r', number: 1 },
          flag: JSON.stringify({ evidence: `seen in ${id}` }),
        }),
      )
    const { page: seen } = await open({ person: 'mo' })
    await visit(seen, 'moderation')
    await seen.getByText('No flags').waitFor()
    const requested: string[] = []
    page.on('request', (request) => requested.push(request.url()))
    await flag('flag-1')
    await seen.getByText('seen in flag-1').waitFor()
    await store.write((tx) => closeConduct(tx, 'flag-1', { by: 'max', decision: 'dismissed', comment: null }))
    await seen.getByText('No flags').waitFor()
    expect(requested.filter((url) => url.includes('moderation'))).toEqual([])
    const refused = await page.evaluate(async () => {
      const headers = { 'x-orc-session': localStorage.getItem('orchub.session')! }
      return (await fetch('/api/v1/moderation/changes', { headers })).status
    })
    expect(refused).toBe(404)
    // The browser logs the 404.
    window.complaints.length = 0
  })

  it('drop audit entries that leave the last ten minutes', async () => {
    const old = new Date(Date.now() - 10 * 60_000 + 8000).toISOString()
    const { page: seen } = await open({ prepare: (it) => it.clock.install() })
    await seen.route('**/api/v1/audit?*since=10m*', async (route) => {
      const lines = (await (await route.fetch()).text())
        .trimEnd()
        .split('\n')
        .filter((line) => line !== '')
      const [first, ...rest] = lines.map((line) => JSON.parse(line))
      const all = [{ ...first, at: old, text: 'about to be old' }, ...rest.slice(-5)]
      await route.fulfill({
        contentType: 'application/x-ndjson',
        body: all.map((one) => `${JSON.stringify(one)}\n`).join(''),
      })
    })
    await visit(seen, 'audit?since=10m')
    const line = seen.locator('.line', { hasText: 'about to be old' })
    await line.waitFor()
    await seen.clock.fastForward(21_000)
    await line.waitFor({ state: 'detached' })
    expect(await seen.locator('.line').count()).toBeGreaterThan(0)
  })
})
