/** Files that agents get from the folders that a plan names. */

import { linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import { OPERATOR, send } from '../harness/engine.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './harness.ts'

let team: RunTeam
let state: string
beforeEach(async () => {
  // Not among the inputs: it changes while they are copied.
  const elsewhere = mkdtempSync(join(tmpdir(), 'orchub-store-'))
  onTestFinished(() => rmSync(elsewhere, { recursive: true, force: true }))
  team = await openRunTeam({ openStore: (options) => openSqliteStore(join(elsewhere, 'orc.db'), options) })
  state = join(team.folder, '.orc')
  mkdirSync(join(state, 'agents'), { recursive: true })
  for (const name of ['operator.token', 'orc.db', 'agents/note']) writeFileSync(join(state, name), 'a secret')
})
afterEach(() => team.close())

async function run(input: string) {
  const id = await team.start(`
agents:
  a: { inputs: [{ path: "${input}", to: inbox/all }], command: "${MADE} x > outbox/x", retries: 0 }
`)
  const seen = await team.ended(id)
  return { id, seen, a: seen.run.nodes.get('a')! }
}

const given = (id: string) =>
  readdirSync(team.pathIn(id, 'a', 'inbox', 'all'), { recursive: true })
    .map(String)
    .sort()
const notes = () => team.entries.filter(({ type }) => type === 'run.noted').map(({ text }) => text)

describe('a folder around the service and its runs', () => {
  it('is copied without the runs of the plan, which contain the workspace itself', async () => {
    team.write('data.txt', 'data')
    team.write('runs/run_0/old.txt', 'old')
    const { id, seen } = await run('.')
    expect(statesOf(seen)).toEqual({ a: 'completed' })
    expect(given(id)).toEqual(['data.txt'])
    expect(notes()).toEqual([
      `${id} a: left out of its inbox: ${join(team.plans, 'runs')} holds the runs of this plan`,
    ])
  })

  it('is copied without the state of the service, whatever its place and name', async () => {
    team.write('data.txt', 'data')
    team.write('runs/.orc/mine.txt', 'of an earlier run')
    symlinkSync('.orc', join(team.folder, 'link'))
    const { id, seen } = await run('..')
    expect(statesOf(seen)).toEqual({ a: 'completed' })
    expect(given(id)).toEqual(['plans', 'plans/data.txt'])
    expect(notes()).toContainEqual(
      `${id} a: left out of its inbox: ${state} is the state folder of the service, which holds its tokens`,
    )
    expect(notes().filter((text) => text.includes('/runs'))).toHaveLength(1)
  })

  it('can be an earlier run that the plan names, or all runs except this one', async () => {
    team.write('runs/old/out.txt', 'old')
    const one = await run('runs/old')
    expect(given(one.id)).toEqual(['out.txt'])
    const all = await run('runs')
    expect(given(all.id)).toContain('old/out.txt')
    expect(given(all.id).filter((name) => name.startsWith(all.id))).toEqual([])
  })
})

describe('the state folder', () => {
  it.each(['../.orc', '../.orc/operator.token', '../.orc/agents', 'link', 'to-token'])(
    'is refused as an input: %s',
    async (input) => {
      symlinkSync('../.orc', join(team.plans, 'link'))
      symlinkSync('link/operator.token', join(team.plans, 'to-token'))
      const { a } = await run(input)
      expect(a.state).toBe('failed')
      expect(a.reason).toContain(`cannot be an input: ${state} is the state folder of the service`)
      expect(a.attempts).toEqual([])
    },
  )

  it('is withheld from fixers as well', async () => {
    team.write('data.txt', 'data')
    const id = await team.start(`
agents:
  a: { inputs: [{ path: .., to: inbox/all }], command: "exit 1", retries: 0, on_error: fix, fixer: mender }
fixers: { mender: { command: "mkdir outbox/inputs; find inbox > outbox/inputs/found" } }
`)
    const found = await team.until(async () => {
      const taken = team.entries.some(({ text }) => text.includes('its inputs were corrected'))
      return taken && team.file(id, '_fixed', 'a', 'found')
    })
    expect(found).toContain('inbox/inputs/all/plans/data.txt')
    expect(found).not.toMatch(/\.orc|runs/)
    await team.runs.cancel(id, 'operator', 'enough')
    await team.ended(id)
  })

  it('can provide inputs for a plan inside it, except tokens and the store', async () => {
    const folder = join(state, 'plan')
    mkdirSync(folder)
    writeFileSync(join(folder, 'data.txt'), 'data')
    linkSync(join(state, 'orc.db'), join(folder, 'linked.db'))
    const plan = (input: string) =>
      `agents: { a: { inputs: [{ path: "${input}", to: inbox/all }], command: "${MADE} x > outbox/x", retries: 0 } }`
    const start = async (input: string) => {
      const fields = { plan: plan(input), folder }
      const { run_id } = await send<{ run_id: string }>(team, OPERATOR, 'start_run', fields)
      const { runFolder, run } = await team.ended(run_id)
      const { state, reason } = run.nodes.get('a')!
      const all = join(runFolder, 'a/inbox/all')
      return { state, reason, names: state === 'completed' ? readdirSync(all).sort() : [] }
    }
    expect(await start('.')).toMatchObject({ state: 'completed', names: ['data.txt'] })
    expect(await start('..')).toMatchObject({ state: 'completed', names: ['plan'] })
    expect((await start('../operator.token')).reason).toContain('operator.token holds tokens of the service')
    expect((await start('linked.db')).reason).toContain('orc.db is the store of the service')
  })
})
