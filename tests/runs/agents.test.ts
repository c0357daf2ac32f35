import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import type { Models, ObjectCall } from '../../src/llm/llm.ts'
import { git } from '../fakes/git.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './harness.ts'

let team: RunTeam
afterEach(() => team.close())

const MODEL = { provider: 'openai-compatible' as const, model: 'x', base_url: 'http://127.0.0.1:1/v1' }
const WITH_MODEL = { models: { fast: MODEL } }
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
    expect(puppets.of('Writer').turns[0]!.text).toContain(team.pathIn(id, 'text'))
    return { puppets, id }
  }

  it('works on a task, and its report counts like a status.json (S4.2)', async () => {
    const { id } = await openWithMember()
    await team.until(async () => (await team.node(id, 'text')).started)
    await team.say('Writer', 'report', { status: 'completed', result: 'Roses are red.' })
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ text: 'completed', after: 'completed' })
    expect(team.file(id, 'text', 'outbox', 'summary.md')).toBe('Roses are red.\n')
    expect(JSON.parse(team.file(id, 'text', 'status.json'))).toMatchObject({ state: 'completed' })
  })

  it('may use only files; then its task ends with them', async () => {
    const { id } = await openWithMember()
    const workspace = team.pathIn(id, 'text')
    writeFileSync(join(workspace, 'outbox', 'summary.md'), 'A poem.')
    writeFileSync(join(workspace, 'outbox', 'poem.md'), 'Violets are blue.')
    writeFileSync(join(workspace, 'status.json'), '{"state": "completed"}')
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ text: 'completed', after: 'completed' })
    expect(team.types()).toContain('task.completed')
  })

  it('fails its attempt when it gives up', async () => {
    const { id } = await openWithMember()
    await team.until(async () => (await team.node(id, 'text')).started)
    const error = { type: 'idea', message: 'No idea comes', recoverable: false }
    writeFileSync(join(team.pathIn(id, 'text'), 'status.json'), JSON.stringify({ state: 'failed', error }))
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ text: 'failed', after: 'failed' })
    expect(seen.run.nodes.get('text')!.reason).toContain('No idea comes')
    expect(team.types()).toContain('task.cancelled')
  })
})

const GUEST =
  'agents: { guest: { program: any, with: { command: "true" }, instructions: Do it., retries: 0 } }'

/** A run whose only agent is a program that is starting. */
async function openWithGuest(plan = GUEST) {
  const puppets = createPuppets()
  team = await openRunTeam({ runtimes: [puppets] })
  const id = await team.start(plan)
  const name = `${id}-guest`
  await team.until(async () => puppets.started(name) === 1)
  const getReady = async () => {
    puppets.of(name).become('idle')
    await team.until(async () => puppets.of(name).turns.length > 0)
  }
  return { puppets, id, name, getReady }
}

it('starts an agent program for the run, and stops it afterwards', async () => {
  const { puppets, id, name, getReady } = await openWithGuest()
  await getReady()
  expect(puppets.of(name).start.cwd).toBe(team.pathIn(id, 'guest'))
  await team.say(name, 'report', { status: 'completed', result: 'Done as asked.' })
  const seen = await team.ended(id)
  expect(seen.run.head.outcome).toBe('completed')
  await team.until(async () => !team.team().names.includes(name))
  expect(puppets.of(name).ended).toBe('stop')
})

describe('a program that', () => {
  it('takes long to start is kept: people get a notice with its screen, and it continues once it is ready', async () => {
    const { puppets, id, name, getReady } = await openWithGuest()
    const told = () => team.entries.filter(({ type }) => type === 'human.asked')
    await team.until(async () => told().length > 0, 5000)
    expect(told()[0]!.text).toMatch(/guest does not start.*orc attach run_1-guest/)
    expect(team.runs.blockedBy(await team.see(id), 'guest')).toContain('to start (orc attach run_1-guest)')
    expect(puppets.of(name).turns).toEqual([])
    await getReady()
    await team.say(name, 'report', { status: 'completed', result: 'Done as asked.' })
    expect((await team.ended(id)).run.nodes.get('guest')).toMatchObject({ state: 'completed', attempt: 1 })
    expect(told()).toHaveLength(1)
  })

  it('cannot be started fails with the reason, and leaves no agent in the team', async () => {
    const puppets = createPuppets()
    puppets.failNext = new Error('claude is not installed')
    team = await openRunTeam({ runtimes: [puppets] })
    const id = await team.start(GUEST)
    expect((await team.ended(id)).run.nodes.get('guest')!.reason).toContain('claude is not installed')
    expect(team.team().names).toEqual(['Helper'])
  })

  it('is stopped while it starts ends at once', async () => {
    const { puppets, id, name } = await openWithGuest()
    await team.runs.cancel(id, 'operator', 'enough')
    expect((await team.ended(id)).run.head.outcome).toBe('cancelled')
    expect(puppets.of(name).ended).toBe('stop')
  })

  it.each(['initializing', 'idle', 'busy'] as const)(
    'is %s when the service ends is found by the next service, and its work counts once',
    async (state) => {
      const { puppets, id, name, getReady } = await openWithGuest()
      if (state !== 'initializing') {
        await getReady()
        puppets.of(name).become(state)
      }
      team = await team.reopened()
      await team.until(async () => puppets.started(name) === 2)
      puppets.of(name).become('idle')
      await team.until(async () => (await team.see(id)).record('guest').task !== undefined)
      await team.until(
        async () => (await team.node(id, 'guest')).started || puppets.of(name).turns.length > 0,
      )
      await team.say(name, 'report', { status: 'completed', result: 'Done as asked.' })
      const seen = await team.ended(id)
      expect(seen.run.nodes.get('guest')).toMatchObject({ state: 'completed', attempt: 1 })
      expect(team.team().names).toEqual(['Helper'])
    },
  )

  it('is in a turn does not stall, however long the turn takes; an idle one does (C22)', async () => {
    const slow = GUEST.replace('retries: 0', 'retries: 0, stall_timeout: 1m, timeout: 20m')
    const { puppets, id, name, getReady } = await openWithGuest(slow)
    await getReady()
    puppets.of(name).become('busy')
    for (let minute = 0; minute < 10; minute++) await team.clock.advance(50_000)
    expect(await team.node(id, 'guest')).toMatchObject({ state: 'running', attempt: 1 })
    puppets.of(name).become('unknown')
    const seen = await team.ended(id, 10_000)
    expect(seen.run.nodes.get('guest')!.reason).toContain('no sign of life for 60 s')
  })
})

it('starts only the members that the plan needs, if the service exists for runs only', async () => {
  const puppets = createPuppets()
  const config = { agents: { Writer: PROGRAM, Idle: PROGRAM } }
  team = await openRunTeam({ runtimes: [puppets], autostart: false, config })
  await team.clock.advance(1000)
  expect([puppets.started('Writer'), puppets.started('Idle')]).toEqual([0, 0])
  await team.start('agents: { text: { agent: Writer, instructions: Write a poem. } }')
  await team.until(async () => puppets.started('Writer') === 1)
  expect(puppets.started('Idle')).toBe(0)
})

it('starts nothing if the settings of a program are wrong, and reports their position', async () => {
  const puppets = createPuppets()
  puppets.check = ({ settings }) =>
    'modle' in (settings as object)
      ? [{ path: ['modle'], message: 'There is no "modle"', hint: 'model?' }]
      : []
  team = await openRunTeam({ runtimes: [puppets] })
  const plan = `agents:
  good: { command: "true" }
  guest:
    program: any
    with:
      modle: fast
`
  await expect(team.start(plan)).rejects.toMatchObject({
    code: 'PLAN_INVALID',
    message: expect.stringContaining(':6:14: agents.guest.with.modle: There is no "modle"'),
  })
  expect(existsSync(join(team.plans, 'runs'))).toBe(false)
})

describe('a model', () => {
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

  it('gets the instructions and the inputs, and its answer becomes its outputs', async () => {
    const { models, asked } = answering({
      summary: 'Summed it up.',
      files: [{ path: 'sum.md', content: 'In short.' }],
    })
    team = await openRunTeam({ models, config: WITH_MODEL })
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

  it('cannot write outside its outbox', async () => {
    const { models } = answering({ summary: 'x', files: [{ path: '../../../stolen', content: 'x' }] })
    team = await openRunTeam({ models, config: WITH_MODEL })
    const id = await team.start('agents: { sly: { model: fast, retries: 0 } }')
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('sly')!.reason).toContain('leads out of the workspace')
    expect(existsSync(join(team.plans, 'stolen'))).toBe(false)
  })

  it('judges by the success criteria if the plan names it (C22)', async () => {
    const { models } = answering({ completed: false, reason: 'it does not rhyme' })
    team = await openRunTeam({ models, config: WITH_MODEL })
    const seen = await team.run(
      `agents: { poet: { command: "${MADE} x > outbox/x", judge: fast, success_criteria: It rhymes., retries: 0 } }`,
    )
    expect(seen.run.nodes.get('poet')!.reason).toContain('it does not rhyme')
  })
})

it('works with somebody outside who only uses the files', async () => {
  team = await openRunTeam()
  const id = await team.start('agents: { outside: { instructions: Someone does it., judge: off } }')
  await team.becomes(id, 'outside', 'running')
  const workspace = team.pathIn(id, 'outside')
  expect(readFileSync(join(workspace, 'inbox', 'instructions.md'), 'utf8')).toContain('Someone does it.')
  await team.until(async () => existsSync(join(workspace, 'status.json')))
  writeFileSync(join(workspace, 'outbox', 'summary.md'), 'It is done.')
  writeFileSync(join(workspace, 'outbox', 'it.md'), 'it')
  writeFileSync(join(workspace, 'status.json'), '{"state": "completed"}')
  expect((await team.ended(id)).run.head.outcome).toBe('completed')
})

it('gives an agent a git worktree on its own branch, and merges nothing', async () => {
  team = await openRunTeam()
  git(team.plans, 'init', '-q', '-b', 'main')
  team.write('code.txt', 'one\n')
  git(team.plans, 'add', '.')
  git(team.plans, 'commit', '-qm', 'first')
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
  expect(git(team.plans, 'log', '--format=%s', `orc/${id}/coder`)).toBe('second\nfirst')
  expect(JSON.parse(team.file(id, 'coder', 'outbox', 'git', 'branch.json'))).toMatchObject({
    branch: `orc/${id}/coder`,
  })
})

it('reports work that is not on the branch of the agent, and refuses a link or an empty place instead of a worktree', async () => {
  team = await openRunTeam()
  git(team.plans, 'init', '-q', '-b', 'main')
  git(team.plans, 'commit', '-q', '--allow-empty', '-m', 'first')
  const commit = 'git -c user.name=x -c user.email=x@example.com commit -q --allow-empty -m'
  team.write('victim/private-name', 'SECRET')
  const agent = (does: string) => `{ worktree: true, retries: 0, command: "${does}; ${MADE} x > outbox/x" }`
  const id = await team.start(`
agents:
  astray: ${agent(`(cd worktree; git checkout -q --detach; ${commit} loose)`)}
  link: ${agent(`mv worktree wt2; ln -s ${join(team.plans, 'victim')} worktree`)}
  gone: ${agent('rm -r worktree')}
`)
  const seen = await team.ended(id)
  expect(statesOf(seen)).toEqual({ astray: 'completed', link: 'failed', gone: 'failed' })
  const notes = team.entries.filter(({ type }) => type === 'run.noted').map(({ text }) => text)
  expect(notes).toEqual([expect.stringMatching(/astray: .* commits on a detached HEAD: \w{12} loose$/)])
  expect(seen.run.nodes.get('link')!.reason).toContain('worktree is a symbolic link')
  expect(existsSync(team.pathIn(id, 'link', 'outbox', 'git'))).toBe(false)
  expect(seen.run.nodes.get('gone')!.reason).toContain('worktree is gone: the agent deleted or moved it')
})

it('continues with a worktree that was made before its inputs existed', async () => {
  team = await openRunTeam()
  git(team.plans, 'init', '-q', '-b', 'main')
  git(team.plans, 'commit', '-q', '--allow-empty', '-m', 'first')
  const plan = (name: string) =>
    `agents: { ${name}: { worktree: true, inputs: [late.txt], command: "${MADE} x > outbox/x" } }`
  const early = await team.start(plan('early'))
  expect((await team.ended(early)).run.nodes.get('early')!.reason).toContain('late.txt')
  expect(git(team.plans, 'branch', '--list', '--format=%(refname:short)', 'orc/*')).toBe(`orc/${early}/early`)
  team.write('late.txt', 'now')
  await team.resume(early)
  const seen = await team.ended(early)
  expect(seen.run.nodes.get('early')).toMatchObject({ state: 'completed', reason: '' })
})

describe('a reviewer', () => {
  const PLAN = `
agents:
  poet: { command: "echo $(cat attempts/*/why.md 2>/dev/null | wc -l) > outbox/poem; ${MADE}", judge: Critic, success_criteria: It rhymes., retries: 1 }
`
  async function openWithCritic(verdicts: string[]) {
    const puppets = createPuppets()
    team = await openRunTeam({ runtimes: [puppets], config: { agents: { Critic: PROGRAM } } })
    const id = await team.start(PLAN)
    puppets.of('Critic').become('idle')
    for (const [index, result] of verdicts.entries()) {
      await team.until(async () => puppets.of('Critic').turns.length > index, 100)
      expect(puppets.of('Critic').turns[index]!.text).toContain('It rhymes.')
      expect(puppets.of('Critic').turns[index]!.text).toContain(team.pathIn(id, 'poet'))
      puppets.of('Critic').become('busy')
      await team.say('Critic', 'report', { status: 'completed', result })
      puppets.of('Critic').become('idle')
    }
    return await team.ended(id)
  }

  it('from the team judges the work; rejected work is tried again with the reason (C22)', async () => {
    const seen = await openWithCritic([
      'REJECTED: roses and violets do not rhyme.',
      '**Accepted.** It rhymes now.',
    ])
    const { state, attempts } = seen.run.nodes.get('poet')!
    expect(state).toBe('completed')
    expect(attempts.map(({ why }) => why)).toEqual([
      'Critic rejected it: roses and violets do not rhyme.',
      '',
    ])
    expect(attempts[1]!.evidence.at(-1)).toMatchObject({
      step: 'judge',
      outcome: 'passed',
      text: 'Critic: It rhymes now.',
    })
    expect(Number(team.file(seen.id, 'poet', 'outbox', 'poem'))).toBeGreaterThan(0)
  })

  it('without a verdict has not judged', async () => {
    const seen = await openWithCritic(['It was a nice read.', 'ACCEPTED'])
    expect(seen.run.nodes.get('poet')!.attempts[0]!.why).toBe('Critic gave no verdict: It was a nice read.')
  })
})

describe('a halt', () => {
  it('aborts the call of a model and repeats it after the halt, in the same attempt', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let calls = 0
    const models = {
      about: () => undefined,
      async generateObject({ signal }: ObjectCall) {
        calls += 1
        if (calls > 1)
          return { ok: true, value: { summary: 'Summed up.', files: [{ path: 'sum.md', content: 'x' }] } }
        resolve()
        await new Promise((_, reject) =>
          signal!.addEventListener('abort', () => reject(new Error('aborted'))),
        )
      },
    } as unknown as Models
    team = await openRunTeam({ models, config: WITH_MODEL })
    const id = await team.start(
      'agents: { short: { model: fast, instructions: Sum it up., retries: 0, judge: off } }',
    )
    await promise
    await team.halt.stop('operator', undefined)
    await team.clock.advance(60_000)
    expect(calls).toBe(1)
    expect((await team.node(id, 'short')).state).toBe('running')
    await team.halt.go('operator')
    expect((await team.ended(id)).run.nodes.get('short')).toMatchObject({ state: 'completed', attempt: 1 })
    expect(calls).toBe(2)
  })

  it('suspends a fixer and its timeout', async () => {
    team = await openRunTeam()
    team.write('in.txt', 'bad')
    const id = await team.start(`
agents:
  picky: { command: "grep -q good inbox/in.txt && ${MADE} x > outbox/x", inputs: [in.txt], retries: 0, on_error: fix, fixer: mender }
fixers:
  mender: { command: "touch ../../../../began; while ! test -e ../../../../enough; do sleep 0.02; done; mkdir -p outbox/inputs; echo good > outbox/inputs/in.txt", timeout: 1m }
`)
    await team.until(async () => existsSync(join(team.plans, 'began')))
    await team.halt.stop('operator', undefined)
    team.write('enough', '')
    await team.clock.advance(10 * 60_000)
    await new Promise((done) => setTimeout(done, 100))
    expect(await team.node(id, 'picky')).toMatchObject({ state: 'fixing' })
    await team.halt.go('operator')
    expect((await team.ended(id, 0)).run.nodes.get('picky')).toMatchObject({ state: 'completed', attempt: 2 })
  })
})
