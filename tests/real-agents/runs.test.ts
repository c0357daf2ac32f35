/**
 * Runs whose agents are real programs (S4; issue 5, §3): the run that the public skill of this protocol expects, and one in
 * which every other kind of agent has its part. The model plays an agent that keeps to SKILL.md.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { stringify } from 'yaml'
import type { AgentName } from '../../scripts/install-agents.ts'
import type { SeenRun } from '../../src/runs/runs.ts'
import { runOrc } from '../cli/orc.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'
import { decide, OPERATOR, send } from '../harness/engine.ts'
import { prepareHome } from './harness/home.ts'
import { openTeam, type RealTeam, type TeamOptions } from './harness/team.ts'

const SECTIONS = [
  'Objective',
  'Context',
  'Inputs Provided',
  'Requirements',
  'Success Criteria',
  'Constraints',
  'Output Expectations',
]
const STATUS =
  'put() { printf \'{"state": "%s", "progress": {"current_step": "%s", "steps_completed": %s, "total_steps": 2}}\' "$1" "$2" "$3" > status.json.tmp && mv status.json.tmp status.json; }'

/** Steps of the model, in order: read, work, report that it is done. */
type Steps = readonly ModelReply[]

const shell = (command: string): ModelReply => ({ toolCalls: [{ shell: command }] })

/** An agent that keeps to SKILL.md and knows nothing but files. */
function byFiles(workspace: string, work: string): Steps {
  const here = (command: string) => shell(`cd ${workspace} && ${STATUS}; ${command}`)
  return [
    here('cat SKILL.md inbox/instructions.md; put running reading 0'),
    here(`put running working 1; ${work}`),
    here('put completed done 2'),
  ]
}

/** The answer of a model without tools: its work. */
const POEM = {
  summary: 'Wrote a short poem on pears.',
  files: [{ path: 'poem.md', content: 'Pears, o pears!\n' }],
}

let team: RealTeam
let plans: string
const script = new Map<string, { steps: Steps; next: number }>()

/** Its first prompt is its task; each tool result leads to the next step. */
function play({ agent = '', side, schema, userText, toolResults }: ModelRequest): ModelReply | undefined {
  if (agent === 'poet' && schema !== undefined) return { text: JSON.stringify(POEM) }
  const part = script.get(agent)
  if (side || part === undefined) return undefined
  const isTask = part.next === 0 && userText.includes('Your folder for this task is')
  if (!isTask && toolResults.length === 0) return undefined
  return part.steps[part.next++] ?? { text: 'That is all.' }
}

async function open(options: Partial<TeamOptions> = {}) {
  team = await openTeam({ programs: {}, play, config: { agents: { Clerk: {} } }, ...options })
  plans = join(team.folder, 'plans')
  mkdirSync(plans)
}

afterEach(async () => {
  script.clear()
  await team?.close()
})

const workspace = (name: string) => join(plans, 'runs', 'run_1', name)
const read = (name: string, ...path: string[]) => readFileSync(join(workspace(name), ...path), 'utf8')

/** A program as the user's own plan would start it: set up on this machine, and trusting the folder of the plan. */
async function guest(name: string, installed: AgentName, steps: Steps) {
  script.set(name, { steps, next: 0 })
  const { settings } = await prepareHome(installed, {
    ...{ folder: join(team.folder, 'homes', name), cwd: plans },
    ...{ modelUrl: team.model.url, key: `sk-ant-fake-${name}` },
  })
  return settings
}

async function start(plan: object): Promise<string> {
  const fields = { plan: stringify(plan), folder: plans }
  const started = await send<{ run_id: string }>(team.orchub.engine, OPERATOR, 'start_run', fields)
  return started.run_id
}

/** Waits for the end of the run and grants every permission that a program asks for. */
async function ended(id: string): Promise<SeenRun> {
  const { runs } = team.orchub.engine
  return await team.until(
    `${id} ends`,
    async () => {
      await grantAll()
      const seen = (await runs.see(id))!
      return seen.run.head.outcome !== null && !seen.run.head.reportPending ? seen : undefined
    },
    300_000,
  )
}

async function grantAll() {
  const { engine } = team.orchub
  const open = await engine.store.all<{ id: number }>(
    "SELECT id FROM human_requests WHERE state = 'open' AND purpose = 'permission'",
    [],
  )
  for (const { id } of open) await decide(engine, { kind: 'operator' }, `req_${id}`, { decision: 'approve' })
}

it('completes the run that the public skill expects, with Codex, Claude Code and opencode (S4.1 to S4.16, issue 5 §3)', async () => {
  await open()
  writeFileSync(join(plans, 'brief.md'), 'Compare apples and pears.\n')
  const instructions = (objective: string) => ({
    objective,
    context: 'It is for people who buy fruit.',
    requirements: ['Name what you looked at.'],
    success_criteria: ['Both fruits are covered.'],
    constraints: ['One page at most.'],
  })
  const research = await guest(
    'research-agent',
    'codex',
    byFiles(
      workspace('research-agent'),
      'cat inbox/brief.md; echo "Apples are round, pears are not." > outbox/findings.md; echo "Looked at both fruits, one after the other." > outbox/summary.md',
    ),
  )
  const analysis = await guest(
    'analysis-agent',
    'claude-code',
    byFiles(
      workspace('analysis-agent'),
      'mkdir -p outbox/data; echo "fruit,price" > outbox/data/prices.csv; echo "Put the prices of both fruits into a table." > outbox/summary.md',
    ),
  )
  const writing = await guest(
    'writer-agent',
    'opencode',
    byFiles(
      workspace('writer-agent'),
      'cat inbox/research-agent/findings.md inbox/analysis/data/prices.csv > outbox/report.md; echo "Wrote the comparison from findings and prices." > outbox/summary.md',
    ),
  )
  const id = await start({
    name: 'Fruit',
    goal: 'Know which fruit to buy.',
    agents: {
      'research-agent': {
        program: 'codex',
        with: { ...research, trust_folder: true },
        template: 'research',
        instructions: instructions('Find out what tells apples from pears.'),
        inputs: ['brief.md'],
        outputs: ['outbox/findings.md'],
        retries: 0,
      },
      'analysis-agent': {
        program: 'claude-code',
        with: analysis,
        template: 'analysis',
        instructions: instructions('Compare the prices.'),
        outputs: ['outbox/data/*.csv'],
        retries: 0,
      },
      'writer-agent': {
        program: 'opencode',
        with: writing,
        template: 'writer',
        instructions: instructions('Write the comparison.'),
        outputs: ['outbox/report.md'],
        retries: 0,
        checks: ['grep -q round outbox/report.md'],
        depends_on: [
          'research-agent',
          { agent: 'analysis-agent', outputs: ['outbox/data/prices.csv'], copy_to: 'inbox/analysis/' },
        ],
      },
    },
  })
  const seen = await ended(id)
  const names = [...seen.run.nodes.keys()]
  expect(names.length).toBeGreaterThanOrEqual(3)
  for (const name of names) {
    expect(seen.run.nodes.get(name), name).toMatchObject({ state: 'completed', attempt: 1, reason: '' })
    const skill = read(name, 'SKILL.md')
    expect(skill).toContain('\n## Objective\n')
    expect(skill).toContain('\n## Communication Protocol\n')
    const told = read(name, 'inbox', 'instructions.md')
    expect(told).toMatch(/^# Task: /)
    expect(told.match(/^## .*$/gm)).toEqual(SECTIONS.map((section) => `## ${section}`))
    expect(JSON.parse(read(name, 'status.json'))).toMatchObject({ state: 'completed' })
    expect(read(name, 'outbox', 'summary.md').trim().length).toBeGreaterThan(20)
    expect(readdirSync(join(workspace(name), 'outbox')).length).toBeGreaterThanOrEqual(2)
    // The model received exactly what is in the workspace.
    await team.received(name).text(instructions('').context)
  }
  expect(read('writer-agent', 'outbox', 'report.md')).toBe('Apples are round, pears are not.\nfruit,price\n')
  expect(seen.run.nodes.get('writer-agent')!.attempts[0]!.orderedAt).toBeGreaterThanOrEqual(
    Math.max(...['research-agent', 'analysis-agent'].map((name) => seen.run.nodes.get(name)!.settledAt!)),
  )
  // The programs are gone, and not members any more.
  await team.until(
    'all guests are gone',
    () => !team.orchub.engine.team().names.some((name) => name.startsWith('run_1-')),
  )
  const report = readFileSync(join(seen.runFolder, 'report.md'), 'utf8')
  for (const name of names) expect(report).toContain(read(name, 'outbox', 'summary.md').trim())
  expect(existsSync(join(seen.runFolder, '_outputs', 'writer-agent', 'report.md'))).toBe(true)

  const dissolved = await runOrc(plans, [
    'workspace',
    'dissolve',
    seen.runFolder,
    '--archive',
    '--keep-outputs',
  ])
  expect(dissolved).toMatchObject({ code: 0 })
  for (const name of names) expect(existsSync(workspace(name)), name).toBe(false)
  const archived = execFileSync('tar', ['-tzf', `${seen.runFolder}.tar.gz`], { encoding: 'utf8' }).split('\n')
  for (const name of names) {
    for (const file of ['SKILL.md', 'inbox/instructions.md', 'outbox/summary.md', 'status.json']) {
      expect(
        archived.some((line) => line.endsWith(`${name}/${file}`)),
        `${name}/${file}`,
      ).toBe(true)
    }
  }
  const consolidated = readFileSync(`${seen.runFolder}.report.md`, 'utf8')
  for (const name of names) expect(consolidated).toContain(name)
})

it('lets an ACP agent, a model of the team, a bare model and a script work on one task (S4.2, S4.15)', async () => {
  const models = ['clerk', 'poet']
  for (const name of models) process.env[`SCRIPTED_KEY_${name}`] = `sk-ant-fake-${name}`
  await open({
    config: ({ modelUrl }) => ({
      agents: { Clerk: { runtime: 'llm', with: { model: 'clerk' }, role: 'Files what is found' } },
      models: Object.fromEntries(
        models.map((name) => [
          name,
          {
            provider: 'openai-compatible' as const,
            model: 'scripted',
            base_url: `${modelUrl}/v1`,
            key_env: `SCRIPTED_KEY_${name}`,
          },
        ]),
      ),
    }),
  })
  const scout = await guest(
    'scout',
    'claude-agent-acp',
    byFiles(
      workspace('scout'),
      'echo pear > outbox/tree.txt; echo "Looked around in the garden." > outbox/summary.md',
    ),
  )
  script.set('clerk', {
    steps: [
      {
        toolCalls: [{ name: 'report', input: { status: 'completed', result: 'Filed under P, like pears.' } }],
      },
    ],
    next: 0,
  })
  const id = await start({
    agents: {
      scout: {
        program: 'claude-code',
        runtime: 'acp',
        with: scout,
        instructions: 'Look around.',
        retries: 0,
      },
      filing: { agent: 'Clerk', instructions: 'File it.', retries: 0 },
      poet: { model: 'poet', instructions: 'Write a poem.', retries: 0 },
      binder: {
        command:
          'cat inbox/*/*.md inbox/scout/tree.txt > outbox/book.md; echo "Bound all of it into a book." > outbox/summary.md',
        depends_on: ['scout', 'filing', 'poet'],
        retries: 0,
      },
    },
  })
  const seen = await ended(id)
  for (const name of models) delete process.env[`SCRIPTED_KEY_${name}`]
  const told = [...seen.run.nodes.values()].map(({ name, state, reason }) =>
    `${name} ${state} ${reason}`.trim(),
  )
  expect(told).toEqual(['scout completed', 'filing completed', 'poet completed', 'binder completed'])
  expect(read('filing', 'outbox', 'result.md')).toBe('Filed under P, like pears.\n')
  expect(JSON.parse(read('filing', 'status.json'))).toMatchObject({ state: 'completed' })
  for (const words of ['Filed under P', 'Pears, o pears!', 'Looked around', 'pear\n']) {
    expect(read('binder', 'outbox', 'book.md')).toContain(words)
  }
})
