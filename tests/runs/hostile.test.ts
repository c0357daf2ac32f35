/** Hostile agents in a run, through the whole engine. */

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decide } from '../harness/engine.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './harness.ts'

let team: RunTeam
beforeEach(async () => {
  team = await openRunTeam()
})
afterEach(() => team.close())

const SUMMARY = 'echo Made what was asked for. > outbox/summary.md'
const SCRIPT = (body: string) => `#!/bin/sh\n${body}\n`

/** A plan of one shell script, and an agent that lists what it gets. */
async function run(script: string, more = 'retries: 0') {
  team.write('agent.sh', SCRIPT(script), 0o755)
  const id = await team.start(`
agents:
  maker: { command: ${join(team.plans, 'agent.sh')}, ${more} }
  next: { command: "find inbox/maker | LC_ALL=C sort > outbox/seen.txt; ${MADE} x > outbox/x", depends_on: [maker], retries: 0 }
`)
  const seen = await team.ended(id)
  return { id, seen, maker: seen.run.nodes.get('maker')! }
}

describe('an outbox', () => {
  it('full of traps gives the next agent only plain files, and none from outside (C21)', async () => {
    const secret = team.write('secret.txt', 'the secret')
    const { id, seen } = await run(
      [
        'cd outbox; echo good > good.txt; echo Made it all. > summary.md',
        `ln -s ${secret} link.txt; ln -s ${team.plans} folder; ln -s /dev/zero zero; ln -s loop loop`,
        `ln ${secret} hard.txt; mkfifo pipe; mknod device c 1 3 2>/dev/null || true`,
        'mkdir -p deep; ln -s ../../inbox deep/up; ln -s .. deep/parent; echo fine > deep/fine.txt',
        'printf x > "$(printf \'bad\\nname\')"; printf x > "$(printf \'\\377bytes\')"',
      ].join('\n'),
    )
    expect(statesOf(seen)).toEqual({ maker: 'completed', next: 'completed' })
    expect(team.file(id, 'next', 'outbox', 'seen.txt').trim().split('\n')).toEqual([
      'inbox/maker',
      'inbox/maker/deep',
      'inbox/maker/deep/fine.txt',
      'inbox/maker/good.txt',
      'inbox/maker/summary.md',
    ])
    const notes = team.entries.filter(({ type }) => type === 'run.noted').map(({ text }) => text)
    expect(notes.some((text) => text.includes('link.txt'))).toBe(true)
    expect(existsSync(team.pathIn(id, '_outputs', 'maker', 'hard.txt'))).toBe(false)
  })

  it('with too many files is an error with their number, and is not truncated', async () => {
    const { maker } = await run(`${SUMMARY}; cd outbox; seq 10001 | xargs touch`)
    expect(maker.state).toBe('failed')
    expect(maker.reason).toMatch(/more than 10,?000 files/)
  })

  it('with a file that is too large to read is an error with the sizes, before anything is read', async () => {
    const checks = 'retries: 0, checks: [{ name: looks, command: "touch ../../../checked" }]'
    for (const more of ['retries: 0', checks]) {
      const { maker } = await run(`${SUMMARY}; truncate -s 8T outbox/big; echo x > outbox/x`, more)
      expect(maker.state).toBe('failed')
      expect(maker.reason).toContain(
        'outbox has 8 TiB of files, of which outbox/big has 8 TiB; the limit is 64 GiB',
      )
      expect(maker.attempts[0]!.evidence).toMatchObject([
        { step: 'schema', outcome: 'passed' },
        { step: 'outputs', outcome: 'failed' },
      ])
    }
    expect(existsSync(join(team.plans, 'checked'))).toBe(false)
  })

  it('with only a link leads to an error that names the link', async () => {
    const { maker } = await run(`${SUMMARY}; ln -s ../workspace/result.txt outbox/result.txt`)
    expect(maker.reason).toMatch(/holds no deliverable.*; outbox\/result\.txt is a symbolic link/)
  })

  it('with a sparse file over the limit hands it on by reference, without a copy', async () => {
    const { id, seen } = await run(`${SUMMARY}; truncate -s 256M outbox/big.bin`)
    expect(statesOf(seen)).toEqual({ maker: 'completed', next: 'completed' })
    const { references } = JSON.parse(team.file(id, 'next', 'inbox', 'references.json'))
    expect(references).toMatchObject([
      {
        path: team.pathIn(id, 'maker', 'outbox', 'big.bin'),
        size: 2 ** 28,
        instead_of: 'inbox/maker/big.bin',
      },
    ])
    expect(existsSync(team.pathIn(id, 'next', 'inbox', 'maker', 'big.bin'))).toBe(false)
    expect(existsSync(team.pathIn(id, '_outputs', 'maker', 'big.bin'))).toBe(false)
    const kept = JSON.parse(team.file(id, '_outputs', 'references.json'))
    expect(kept.references).toMatchObject([
      { size: 2 ** 28, instead_of: 'maker/big.bin', sha256: references[0].sha256 },
    ])
  })
})

describe('an agent that', () => {
  it('replaces its outbox by a link, or removes it, has delivered nothing', async () => {
    mkdirSync(join(team.plans, 'elsewhere'))
    writeFileSync(join(team.plans, 'elsewhere', 'summary.md'), 'The secret of others.')
    const linked = await run(`rm -r outbox; ln -s ${team.plans}/elsewhere outbox`)
    expect(statesOf(linked.seen)).toEqual({ maker: 'failed', next: 'failed' })
    const gone = await run('rm -r outbox')
    expect(gone.maker).toMatchObject({ state: 'failed', reason: expect.stringContaining('outbox') })
    expect(readFileSync(join(team.plans, 'elsewhere', 'summary.md'), 'utf8')).toBe('The secret of others.')
  })

  it('removed its outbox has a new one for its next attempt', async () => {
    const { maker } = await run(
      `test -e ../../../once || { touch ../../../once; rm -r outbox inbox; exit 1; }; ${SUMMARY}; echo x > outbox/x`,
      'retries: 1',
    )
    expect(maker).toMatchObject({ state: 'completed', attempt: 2 })
  })

  it('writes a status.json over the limit is not read, and its report does not count (C23)', async () => {
    const { maker } = await run(
      `${SUMMARY}; echo x > outbox/x; { printf '{"state": "completed", "x": "'; head -c 11000000 /dev/zero | tr '\\0' x; printf '"}'; } > status.json`,
    )
    expect(maker.state).toBe('failed')
    expect(maker.reason).toMatch(/status\.json.*(10 MiB|10485760|10,485,760|limit)/)
  })

  it('kills itself without a report and an exit code is noticed', async () => {
    const { maker } = await run('kill -9 $$')
    expect(maker.reason).toMatch(/137|SIGKILL/)
  })

  it('prints shows life; one that neither prints nor writes status.json stalls', async () => {
    const id = await team.start(`
agents:
  loud: { command: "while ! test -e ../../../enough; do echo still here; sleep 0.01; done; ${MADE} x > outbox/x", stall_timeout: 1m, timeout: 2h, retries: 0 }
  still: { command: "sleep 600", stall_timeout: 1m, timeout: 2h, retries: 0 }
`)
    await team.becomes(id, 'loud', 'running')
    let printed = 0
    while ((await team.node(id, 'still')).state !== 'failed') {
      // On a busy machine, a minute of simulated time may pass before the next line.
      printed = await team.until(async () => {
        const log = statSync(team.pathIn(id, '_logs/loud.1.log'), { throwIfNoEntry: false })
        return log !== undefined && log.size > printed && log.size
      })
      await team.clock.advance(5000)
    }
    expect((await team.node(id, 'still')).reason).toContain('no sign of life for 60 s')
    expect(await team.node(id, 'loud')).toMatchObject({ state: 'running', attempt: 1 })
    team.write('enough', '')
    expect((await team.ended(id)).run.nodes.get('loud')!.state).toBe('completed')
  })
})

describe('the log of another agent', () => {
  // The attempt starts after the trap was planted.
  const logged = (plant: string) => `
agents:
  planter: { command: "${plant}; ${MADE} x > outbox/x" }
  gate: { command: "${MADE} x > outbox/x", depends_on: [planter] }
  other: { command: "echo what it printed; exit 4", depends_on: [planter, gate], retries: 0 }
  last: { command: "${MADE} x > outbox/x", depends_on: [{ agent: other, on_failure: proceed }] }
`

  it('blocks no reader if an agent replaces it by a pipe', async () => {
    const seen = await team.ended(await team.start(logged('mkfifo ../_logs/other.1.log')))
    expect(statesOf(seen)).toEqual({
      planter: 'completed',
      gate: 'completed',
      other: 'failed',
      last: 'completed',
    })
    expect(seen.run.nodes.get('other')!.reason).toContain('what it printed')
  })

  it.each([
    ['the log', 'ln -s ../../../victim.txt ../_logs/other.1.log'],
    ['the exit code', 'ln -s ../../../victim.txt ../_logs/other.1.exit'],
  ])('is not written through a link that replaces %s', async (_, plant) => {
    team.write('victim.txt', 'as it was')
    const seen = await team.ended(await team.start(logged(plant)))
    expect(statesOf(seen)).toEqual({
      planter: 'completed',
      gate: 'completed',
      other: 'failed',
      last: 'completed',
    })
    expect(readFileSync(join(team.plans, 'victim.txt'), 'utf8')).toBe('as it was')
  })
})

describe('beside the workspaces, an agent', () => {
  it.each(['ln -s $PWD/../../../victim.txt', 'mkfifo'])('cannot redirect the report (%s)', async (plant) => {
    const victim = team.write('victim.txt', 'the victim')
    const plants = ['report.md.tmp', 'report.html.tmp', 'report.md', 'report.html']
    const { id, seen } = await run(
      [...plants.map((name) => `${plant} ../${name}`), `${SUMMARY}; echo x > outbox/x`].join('\n'),
    )
    expect(statesOf(seen)).toEqual({ maker: 'completed', next: 'completed' })
    expect(readFileSync(victim, 'utf8')).toBe('the victim')
    expect(lstatSync(team.pathIn(id, 'report.md')).isFile()).toBe(true)
    expect(team.file(id, 'report.md')).toContain('**completed**')
  })

  it('cannot add to the outputs of others or redirect them', async () => {
    const victim = team.write('victim/kept.txt', 'the victim')
    // Once the outputs of the first are there, if they are gathered ahead, and before those of the last are.
    const plant = `for i in $(seq 50); do test -e ../_outputs/one/summary.md && break; sleep 0.02; done; mkdir -p ../_outputs/two
      ln -s ${join(team.plans, 'victim')} ../_outputs/last
      ln -s ${victim} ../_outputs/references.json; echo planted > ../_outputs/two/planted`
    team.write('plant.sh', SCRIPT(`${plant}; ${SUMMARY}; echo x > outbox/x`), 0o755)
    const id = await team.start(`
agents:
  one: { command: "${MADE} x > outbox/x" }
  two: { command: ${join(team.plans, 'plant.sh')}, depends_on: [one], retries: 0 }
  beside: { command: "${MADE} x > outbox/x", depends_on: [one] }
  last: { command: "${MADE} x > outbox/x; truncate -s 11M outbox/big", depends_on: [two] }
`)
    expect((await team.ended(id)).run.head.outcome).toBe('completed')
    expect(readdirSync(join(team.plans, 'victim'))).toEqual(['kept.txt'])
    expect(readFileSync(victim, 'utf8')).toBe('the victim')
    expect(readdirSync(team.pathIn(id, '_outputs', 'two')).sort()).toEqual(['summary.md', 'x'])
    expect(readdirSync(team.pathIn(id, '_outputs', 'last')).sort()).toEqual(['summary.md', 'x'])
    expect(lstatSync(team.pathIn(id, '_outputs', 'references.json')).isFile()).toBe(true)
  })

  it.each([
    ['a link', 'ln -s ../../../victim ../_fixed/next'],
    ['a folder', 'mkdir ../_fixed/next; cp ../../../victim/f ../_fixed/next/f'],
    [
      'a link on the way',
      'rmdir ../_fixed; mkdir ../../../away; ln -s ../victim ../../../away/next; ln -s ../../away ../_fixed',
    ],
  ])(
    'cannot correct the inputs of another agent unless somebody reported a correction (%s)',
    async (_, plant) => {
      team.write('victim/f', 'the victim')
      const { id, seen } = await run(`mkdir -p ../_fixed; ${plant}; ${SUMMARY}; echo x > outbox/x`)
      expect(statesOf(seen)).toEqual({ maker: 'completed', next: 'completed' })
      expect(existsSync(team.pathIn(id, 'next', 'inbox', 'f'))).toBe(false)
    },
  )
})

it('does not run a fixer in a folder that an agent has linked', async () => {
  team.write('victim/b.1/kept', 'the victim')
  const id = await team.start(`
agents:
  b: { command: "ln -s ../../victim ../_fixes; exit 1", retries: 0, on_error: fix, fixer: mender }
fixers:
  mender: { command: "mkdir outbox/inputs; echo x > outbox/inputs/x" }
`)
  const { reason } = await team.becomes(id, 'b', 'asking')
  expect(reason).toContain('_fixes is a symbolic link')
  expect(readFileSync(join(team.plans, 'victim/b.1/kept'), 'utf8')).toBe('the victim')
})

describe('a correction by a person in _fixed', () => {
  async function answer(id: string, ask: number, comment: string) {
    const { id: key } = (await team.until(async () => await team.runs.requestOf(id, 'b', ask)))!
    await decide(team, { kind: 'operator' }, `req_${key}`, { decision: 'answer', comment })
  }
  const PLAN = `agents: { b: { command: "grep good inbox/f && test -e ../../../enough && ${MADE} x > outbox/x", retries: 0, on_error: escalate } }`

  it("counts after the person's answer, also after a restart and in later rounds", async () => {
    const id = await team.start(PLAN)
    await team.becomes(id, 'b', 'asking')
    mkdirSync(team.pathIn(id, '_fixed', 'b'), { recursive: true })
    writeFileSync(team.pathIn(id, '_fixed', 'b', 'f'), 'good')
    await answer(id, 1, 'retry')
    await team.until(async () => (await team.node(id, 'b')).asks === 2)
    expect(existsSync(team.pathIn(id, 'b', 'inbox', 'f'))).toBe(false)
    await answer(id, 2, 'fixed')
    await team.until(async () => (await team.node(id, 'b')).asks === 3)
    expect(team.file(id, 'b', 'inbox', 'f')).toBe('good')
    team = await team.reopened()
    team.write('enough', '')
    await answer(id, 3, 'retry')
    expect(statesOf(await team.ended(id))).toEqual({ b: 'completed' })
    await team.resume(id)
    const again = await team.ended(id)
    expect(again.run.nodes.get('b')).toMatchObject({ state: 'completed', cached: true })
  })

  it('is refused if it is a link', async () => {
    team.write('elsewhere/f', 'good')
    team.write('enough', '')
    const id = await team.start(PLAN)
    await team.becomes(id, 'b', 'asking')
    mkdirSync(team.pathIn(id, '_fixed'))
    symlinkSync(join(team.plans, 'elsewhere'), team.pathIn(id, '_fixed', 'b'))
    await answer(id, 1, 'fixed')
    await team.until(async () => (await team.node(id, 'b')).asks === 2)
    expect((await team.node(id, 'b')).reason).toContain('_fixed/b is a symbolic link')
    expect(existsSync(team.pathIn(id, 'b', 'inbox', 'f'))).toBe(false)
  })

  it('combines the results of successive fixers, without planted files', async () => {
    team.write('victim/f', 'the victim')
    const id = await team.start(`
agents:
  b:
    command: "test -e ../_fixed || { mkdir ../_fixed; ln -s ../../../victim ../_fixed/b; }; cat inbox/one inbox/two && ls inbox > outbox/seen && ${MADE} > /dev/null"
    retries: 0
    on_error: fix
    fixer: mender
    max_fixes: 2
fixers:
  mender: { command: "mkdir outbox/inputs; test -e inbox/corrected_before/one && echo 2 > outbox/inputs/two || echo 1 > outbox/inputs/one" }
`)
    expect(statesOf(await team.ended(id))).toEqual({ b: 'completed' })
    expect(team.file(id, 'b', 'outbox', 'seen')).toBe('instructions.md\none\ntwo\n')
    expect(readdirSync(team.pathIn(id, '_fixed'))).toEqual(['b'])
    expect(readdirSync(join(team.plans, 'victim'))).toEqual(['f'])
  })
})

it('does not use a folder of the same name that another service has left', async () => {
  const left = join(team.plans, 'runs', 'run_1', 'maker')
  mkdirSync(join(left, 'outbox'), { recursive: true })
  writeFileSync(join(left, 'status.json'), '{"state": "completed"}')
  writeFileSync(join(left, 'outbox', 'summary.md'), 'An old summary.')
  const { seen } = await run(`${SUMMARY}; echo new > outbox/new.txt`)
  expect(seen.runFolder).toBe(join(team.plans, 'runs', 'run_1.2'))
  expect(statesOf(seen)).toEqual({ maker: 'completed', next: 'completed' })
  expect(readFileSync(join(seen.runFolder, 'maker', 'outbox', 'new.txt'), 'utf8')).toBe('new\n')
  expect(readFileSync(join(left, 'outbox', 'summary.md'), 'utf8')).toBe('An old summary.')
  expect(statSync(join(seen.runFolder, 'report.md')).size).toBeGreaterThan(0)
})
