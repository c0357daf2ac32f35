import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Models, ObjectCall } from '../../src/models/model.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './run-harness.ts'

let team: RunTeam
afterEach(() => team.close())

const PROGRAM = { runtime: 'tmux' as const, program: 'any' as const, with: { command: 'true' } }

describe('a member of the team', () => {
  async function openWithMember() {
    const puppets = createPuppets()
    team = await openRunTeam({ runtimes: [puppets], config: { agents: { Writer: PROGRAM } } })
    const id = await team.start(`
agents:
  text: { agent: Writer, instructions: Write a poem., retries: 0, judge: off }
  after: { command: "cp inbox/text/* outbox/; ${MADE} x > outbox/x", depends_on: [text] }
`)
    puppets.of('Writer').become('idle')
    await team.until(async () => puppets.of('Writer').turns.length > 0)
    expect(puppets.of('Writer').turns[0]!.text).toContain(team.place(id, 'text'))
    return { puppets, id }
  }

  it('does its work by a task, and its report counts like a status.json (S4.2)', async () => {
    const { id } = await openWithMember()
    await team.until(async () => (await team.node(id, 'text')).started)
    await team.say('Writer', 'report', { status: 'completed', result: 'Roses are red.' })
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ text: 'completed', after: 'completed' })
    expect(team.file(id, 'text', 'outbox', 'summary.md')).toBe('Roses are red.\n')
    expect(JSON.parse(team.file(id, 'text', 'status.json'))).toMatchObject({ state: 'completed' })
  })

  it('may as well only know files: then its task ends with them', async () => {
    const { id } = await openWithMember()
    const workspace = team.place(id, 'text')
    writeFileSync(join(workspace, 'outbox', 'summary.md'), 'A poem.')
    writeFileSync(join(workspace, 'outbox', 'poem.md'), 'Violets are blue.')
    writeFileSync(join(workspace, 'status.json'), '{"state": "completed"}')
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ text: 'completed', after: 'completed' })
    expect(team.types()).toContain('task.completed')
  })

  it('that gives up fails its attempt', async () => {
    const { id } = await openWithMember()
    await team.until(async () => (await team.node(id, 'text')).started)
    const error = { type: 'idea', message: 'No idea comes', recoverable: false }
    writeFileSync(join(team.place(id, 'text'), 'status.json'), JSON.stringify({ state: 'failed', error }))
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ text: 'failed', after: 'failed' })
    expect(seen.run.nodes.get('text')!.reason).toContain('No idea comes')
    expect(team.types()).toContain('task.cancelled')
  })
})

it('starts an agent program for the run, and lets it go afterwards', async () => {
  const puppets = createPuppets()
  team = await openRunTeam({ runtimes: [puppets] })
  const id = await team.start(`
agents: { guest: { program: any, with: { command: "true" }, instructions: Do it., retries: 0 } }
`)
  const name = `${id}-guest`
  await team.until(async () => puppets.started(name) === 1)
  puppets.of(name).become('idle')
  await team.until(async () => puppets.of(name).turns.length > 0)
  expect(puppets.of(name).start.cwd).toBe(team.place(id, 'guest'))
  await team.say(name, 'report', { status: 'completed', result: 'Done as asked.' })
  const seen = await team.ended(id)
  expect(seen.run.head.outcome).toBe('completed')
  await team.until(async () => !team.team().names.includes(name))
  expect(puppets.of(name).ended).toBe('stop')
})

describe('a model', () => {
  const config = {
    models: {
      fast: { provider: 'openai-compatible' as const, model: 'x', base_url: 'http://127.0.0.1:1/v1' },
    },
  }
  function answering(value: unknown) {
    const asked: ObjectCall[] = []
    const spending = { model: 'x', input: 100, output: 20, cacheRead: 0, cacheWrite: 0 }
    const models = {
      about: () => undefined,
      async generateObject(call: ObjectCall) {
        asked.push(call)
        call.spent?.(spending)
        return { ok: true, value, spending }
      },
    } as unknown as Models
    return { models, asked }
  }

  it('is given the instructions and the inputs, and what it answers is its work', async () => {
    const { models, asked } = answering({
      summary: 'Summed it up.',
      files: [{ path: 'sum.md', content: 'In short.' }],
    })
    team = await openRunTeam({ models, config })
    team.write('long.txt', 'A long story.')
    const id = await team.start(
      'agents: { short: { model: fast, instructions: Sum it up., inputs: [long.txt], judge: off } }',
    )
    const seen = await team.ended(id)
    expect(seen.run.head.outcome).toBe('completed')
    expect(asked[0]!.prompt).toMatch(/Sum it up\.[\s\S]*A long story\./)
    expect(team.file(id, 'short', 'outbox', 'sum.md')).toBe('In short.')
    expect(seen.run.nodes.get('short')!.attempts[0]!.spent).toMatchObject({
      inputTokens: 100,
      outputTokens: 20,
    })
  })

  it('cannot write outside of its outbox', async () => {
    const { models } = answering({ summary: 'x', files: [{ path: '../../../stolen', content: 'x' }] })
    team = await openRunTeam({ models, config })
    const id = await team.start('agents: { sly: { model: fast, retries: 0 } }')
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('sly')!.reason).toContain('leads out of the workspace')
    expect(existsSync(join(team.plans, 'stolen'))).toBe(false)
  })

  it('judges by the success criteria where the plan names it (C22)', async () => {
    const { models } = answering({ completed: false, reason: 'it does not rhyme' })
    team = await openRunTeam({ models, config })
    const id = await team.start(
      `agents: { poet: { command: "${MADE} x > outbox/x", judge: fast, success_criteria: It rhymes., retries: 0 } }`,
    )
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('poet')!.reason).toContain('it does not rhyme')
  })
})

it('works with someone outside who only knows the files', async () => {
  team = await openRunTeam()
  const id = await team.start('agents: { outside: { instructions: Someone does it., judge: off } }')
  await team.becomes(id, 'outside', 'running')
  const workspace = team.place(id, 'outside')
  expect(readFileSync(join(workspace, 'inbox', 'instructions.md'), 'utf8')).toContain('Someone does it.')
  await team.until(async () => existsSync(join(workspace, 'status.json')))
  writeFileSync(join(workspace, 'outbox', 'summary.md'), 'It is done.')
  writeFileSync(join(workspace, 'outbox', 'it.md'), 'it')
  writeFileSync(join(workspace, 'status.json'), '{"state": "completed"}')
  expect((await team.ended(id)).run.head.outcome).toBe('completed')
})

it('gives an agent a git worktree on a branch of its own, and merges nothing', async () => {
  team = await openRunTeam()
  const { execFileSync } = await import('node:child_process')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=x', '-c', 'user.email=x@example.com', ...args], {
      cwd: team.plans,
      encoding: 'utf8',
    })
  git('init', '-q', '-b', 'main')
  team.write('code.txt', 'one\n')
  git('add', '.')
  git('commit', '-qm', 'first')
  const id = await team.start(`
agents:
  coder:
    worktree: true
    command: "cd worktree; echo two >> code.txt; git -c user.name=x -c user.email=x@example.com commit -qam second; cd ..; ${MADE} x > outbox/x"
    checks: ["grep -q two worktree/code.txt"]
`)
  const seen = await team.ended(id)
  expect(seen.run.nodes.get('coder')).toMatchObject({ state: 'completed', reason: '' })
  expect(readFileSync(join(team.plans, 'code.txt'), 'utf8')).toBe('one\n')
  expect(git('log', '--format=%s', `orc/${id}/coder`)).toBe('second\nfirst\n')
  expect(JSON.parse(team.file(id, 'coder', 'outbox', 'git', 'branch.json'))).toMatchObject({
    branch: `orc/${id}/coder`,
  })
})
