import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type ModelServer, startModelServer } from '../../../fakes/model-server/model-server.ts'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

let team: TeamFolder
let server: ModelServer

afterEach(async () => {
  await team.close()
  await server.close()
})

const agent = (name: string, depends_on: string[] = []) => ({
  name,
  by: 'command',
  who: 'true',
  template: 'generic',
  objective: `Be ${name}`,
  context: '',
  requirements: [],
  success_criteria: [],
  constraints: [],
  outputs: ['outbox/result.md'],
  depends_on: depends_on.map((one) => ({ agent: one, outputs: [] })),
})

/** A service whose planner proposes these agents. */
async function open(agents: object[], planner = 'runs: { planner: local }') {
  server = await startModelServer({ play: () => ({ text: JSON.stringify({ name: 'Proposed', agents }) }) })
  team = createTeamFolder(`agents: { Lead: {} }
models:
  local: { provider: openai-compatible, model: llama-3, base_url: "${server.url}/v1", retries: 0 }
${planner}
`)
  await team.start()
}

describe('orc run propose', () => {
  it('prints the plan that a model proposes or writes it to --out, and starts nothing', async () => {
    await open([agent('finder'), agent('writer', ['finder'])])
    const shown = await team.orc(['plan', 'Write', 'it', 'down'])
    expect(shown).toMatchObject({ code: 0, err: expect.stringContaining('Nothing runs yet') })
    expect(shown.out).toContain('goal: Write it down')
    const file = join(team.folder, 'plan.yaml')
    const written = await team.orc(['plan', 'Write it down', '--out', 'plan.yaml'])
    expect(written).toMatchObject({ code: 0, out: '' })
    expect(readFileSync(file, 'utf8')).toBe(shown.out)
    expect((await team.orc('run plan.yaml --dry-run')).out).toContain('1. finder\n2. writer')
    expect((await team.orc('runs')).err).toContain('No runs yet')
    writeFileSync(file, 'mine')
    expect((await team.orc('plan again --out plan.yaml')).code).toBe(1)
    expect(readFileSync(file, 'utf8')).toBe('mine')
    expect((await team.orc('plan again --out plan.yaml --force')).code).toBe(0)
    expect((await team.orc('plan - --json', { input: 'From a pipe\n' })).json()).toMatchObject([
      { model: 'local', problems: [], plan: expect.stringContaining('goal: From a pipe') },
    ])
  })

  it('reports mistakes in a proposal, and prints it anyway', async () => {
    await open([agent('one', ['two']), agent('two', ['one'])])
    const ran = await team.orc('plan nonsense --out plan.yaml')
    expect(ran.code).toBe(1)
    expect(ran.err).toMatch(/plan\.yaml:\d+:\d+:.*one → two → one/)
    expect(existsSync(join(team.folder, 'plan.yaml'))).toBe(true)
  })

  it('says what to set if orc.yaml names no planner', async () => {
    await open([], '')
    expect((await team.orc('plan something')).err).toContain('planner')
    expect((await team.orc('plan')).code).toBe(2)
  })
})
