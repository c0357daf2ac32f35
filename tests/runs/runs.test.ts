import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readProcesses } from '../../src/runtimes/processes.ts'
import { decide } from '../harness/engine.ts'
import { MADE, openRunTeam, type RunTeam, statesOf } from './harness.ts'

let team: RunTeam
beforeEach(async () => {
  team = await openRunTeam()
})
afterEach(() => team.close())

describe('a run of plain commands', () => {
  it('starts agents in order, and hands on validated outputs (S4.14, S4.15, C22)', async () => {
    team.write('names.txt', 'b\na\n')
    const id = await team.start(`
name: Sorted
agents:
  sorter: { command: "sort inbox/names.txt > outbox/sorted.txt; ${MADE} > /dev/null", inputs: [names.txt], outputs: [sorted.txt] }
  upper:
    command: "tr a-z A-Z < inbox/in/sorted.txt > outbox/upper.txt; ${MADE} > /dev/null"
    depends_on: [{ agent: sorter, outputs: [sorted.txt], copy_to: inbox/in }]
  counter: { command: "wc -l < inbox/sorter/sorted.txt > outbox/count.txt; ${MADE} > /dev/null", depends_on: [sorter] }
`)
    const seen = await team.ended(id)
    expect(seen.run.head.outcome).toBe('completed')
    expect(team.file(id, 'upper', 'outbox', 'upper.txt')).toBe('A\nB\n')
    expect(JSON.parse(team.file(id, 'upper', 'inbox', 'dependencies.json'))).toMatchObject({
      wait_for: ['sorter'],
    })
    expect(team.file(id, '_outputs', 'counter', 'count.txt').trim()).toBe('2')
    expect(team.file(id, 'report.md')).toContain('**completed**')
    expect(team.file(id, 'report.html')).toContain('<svg')
    // The event comes after the sync, a moment after the row can be read.
    await expect.poll(() => team.entries.filter(({ type }) => type === 'run.ended')).toHaveLength(1)
  })

  it('follows status.json if the agent uses it (S4.2)', async () => {
    const put = (state: string, more = '') => `printf '{"state": "${state}"${more}}' > s; mv s status.json`
    const seen = await team.run(`
agents:
  one:
    command: |
      ${put('running', ', "progress": {"current_step": "half", "steps_completed": 1, "total_steps": 2}')}
      sleep 0.3; echo x > outbox/x.txt; echo Done it all. > outbox/summary.md
      ${put('completed')}
      exit 0
`)
    expect(seen.run.nodes.get('one')).toMatchObject({ state: 'completed', attempt: 1 })
    expect(team.types()).toContain('run.progress')
  })

  it('does not complete an agent without a summary and a deliverable (S4.7, C22)', async () => {
    const seen = await team.run(`agents: { idle: { command: "true", retries: 0 } }`)
    expect(seen.run.head.outcome).toBe('failed')
    expect(seen.run.nodes.get('idle')!.reason).toContain('summary.md is required')
  })

  it('runs the declared checks in the workspace before the work counts (C22)', async () => {
    const seen = await team.run(`
agents:
  good: { command: "${MADE} yes > outbox/a.txt", checks: ["grep -q yes outbox/a.txt"] }
  bad: { command: "${MADE} no > outbox/a.txt", retries: 0, checks: [{ name: is yes, command: "grep -q yes outbox/a.txt" }] }
`)
    expect(statesOf(seen)).toEqual({ good: 'completed', bad: 'failed' })
    expect(seen.run.nodes.get('bad')!.reason).toContain('the check "is yes" failed')
  })

  it('refuses a plan with mistakes before anything starts, and reports their positions', async () => {
    await expect(
      team.start('agents:\n  a: { command: x, depends_on: [b] }\n  b: { command: x, depends_on: [a] }\n'),
    ).rejects.toMatchObject({
      code: 'PLAN_INVALID',
      message: expect.stringContaining('a waits for itself: a → b → a'),
    })
    expect(existsSync(join(team.plans, 'runs'))).toBe(false)
  })

  it('refuses the work of an agent that changed its inbox (C21)', async () => {
    team.write('in.txt', 'as given')
    const seen = await team.run(`
agents:
  sly: { inputs: [in.txt], retries: 0, command: "chmod -R u+w inbox; echo other > inbox/in.txt; ${MADE} x > outbox/x" }
`)
    expect(seen.run.nodes.get('sly')!.reason).toContain('it changed its inbox')
  })

  it('does not copy links from an outbox (S4.10)', async () => {
    const secret = team.write('secret.txt', 'not for you')
    const { id } = await team.run(`
agents:
  trapper: { command: "ln -s ${secret} outbox/link; mkfifo outbox/pipe; ${MADE} x > outbox/x.txt" }
  next: { command: "ls inbox/trapper > outbox/seen.txt; ${MADE} > /dev/null", depends_on: [trapper] }
`)
    expect(team.file(id, 'next', 'outbox', 'seen.txt').split('\n')).toEqual(['summary.md', 'x.txt', ''])
    expect(team.entries.some(({ text }) => text.includes('is a symbolic link'))).toBe(true)
  })

  it.each([
    ['', 'sleep 300'],
    [', even without the mark in their environment', 'env -i sleep 300'],
  ])('kills processes that an agent left in its group%s', async (_, left) => {
    const id = await team.start(
      `agents: { parent: { command: "${left} & echo $! > outbox/pid; ${MADE} > /dev/null" } }`,
    )
    await team.ended(id)
    const pid = Number(team.file(id, 'parent', 'outbox', 'pid'))
    const found = (await readProcesses()).filter((one) => one.pid === pid && !one.isZombie)
    expect(found).toEqual([])
  })

  it('keeps two runs of one plan apart', async () => {
    const plan = `agents: { who: { command: "sleep 0.05; pwd > outbox/where.txt; ${MADE} > /dev/null" } }`
    const [one, two] = await Promise.all([team.start(plan), team.start(plan)])
    await Promise.all([team.ended(one!), team.ended(two!)])
    const places = [one!, two!].map((id) => team.file(id, 'who', 'outbox', 'where.txt').trim())
    expect(places).toEqual([team.pathIn(one!, 'who'), team.pathIn(two!, 'who')])
  })

  it('runs no more agents in parallel than the plan allows', async () => {
    const busy = team.write('busy.log', '')
    const agent = `{ command: "echo + >> ${busy}; sleep 0.1; echo - >> ${busy}; ${MADE} x > outbox/x" }`
    await team.run(
      `concurrency: 2\nagents: { a: ${agent}, b: ${agent}, c: ${agent}, d: ${agent}, e: ${agent} }`,
    )
    let alive = 0
    let most = 0
    for (const sign of readFileSync(busy, 'utf8').trim().split('\n')) {
      alive += sign === '+' ? 1 : -1
      most = Math.max(most, alive)
    }
    expect([most, alive]).toEqual([2, 0])
  })
})

describe('a status.json', () => {
  const script = (write: string) => `
agents:
  one: { command: "${MADE} x > outbox/x; python3 ../../../write.py" , retries: 0 }
# ${write}
`
  it.each([
    [
      'in pieces',
      `import time\nt='{"state": "running", "padding": "' + 'x' * 5000 + '"}'\nf=open('status.json','w')\nfor i in range(0,len(t),500):\n  f.write(t[i:i+500]); f.flush(); time.sleep(0.01)\nf.close()\nopen('status.json','w').write('{"state": "completed"}')`,
    ],
    ['with a byte order mark', `open('status.json','wb').write(b'\\xef\\xbb\\xbf{"state": "completed"}')`],
    ['with CRLF', `open('status.json','wb').write(b'{\\r\\n"state": "completed"\\r\\n}\\r\\n')`],
    [
      'with almost 10 MiB',
      `open('status.json','w').write('{"state": "completed", "padding": "' + 'x' * (10 * 1024 * 1024 - 100) + '"}')`,
    ],
  ])('is read %s (C23)', async (_, write) => {
    team.write('write.py', write)
    const id = await team.start(script('').replace('# \n', ''))
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('one')).toMatchObject({ state: 'completed', reason: '' })
  })

  it('with an invalid transition is recorded, and changes nothing (S4.3)', async () => {
    const seen = await team.run(`
agents:
  one: { command: "${MADE} x > outbox/x; echo '{\\"state\\": \\"completed\\"}' > status.json; sleep 0.2; echo '{\\"state\\": \\"running\\"}' > status.json; sleep 0.2" }
`)
    expect(seen.run.nodes.get('one')!.state).toBe('completed')
    expect(team.entries.some(({ text }) => text.includes('went from completed to running'))).toBe(true)
  })
})

describe('recovery', () => {
  it('retries after 1, 2, 4 s, keeps the results of each attempt, and then notifies a person (S4.12, C7)', async () => {
    const id = await team.start(`
agents:
  weak: { command: "echo '## Description' > outbox/error_report.md; mkdir outbox/partial; echo half > outbox/partial/x; echo out of luck >&2; exit 3" }
`)
    const seen = await team.ended(id, 100)
    const node = seen.run.nodes.get('weak')!
    expect(node).toMatchObject({ state: 'failed', attempt: 4 })
    expect(node.reason).toContain('it exited with 3: out of luck; 4 attempts failed')
    expect(readdirSync(team.pathIn(id, 'weak', 'attempts'))).toEqual(['1', '2', '3'])
    expect(team.file(id, 'weak', 'attempts', '2', 'outbox', 'partial', 'x')).toBe('half\n')
    await team.until(async () => team.types().includes('human.asked'))
    const pauses = node.attempts
      .slice(1)
      .map(({ orderedAt }, index) => orderedAt - node.attempts[index]!.endedAt!)
    expect(pauses.map((ms) => Math.floor(ms / 1000))).toEqual([1, 2, 4])
  })

  it('reports the error without the stack trace', async () => {
    const printed = `SyntaxError: no such word\\n${'    at step (file.js:1:2)\\n'.repeat(30)}Node.js`
    const id = await team.start(`
agents:
  weak: { command: "printf '${printed}'; exit 1", retries: 0 }
`)
    const { reason } = (await team.ended(id)).run.nodes.get('weak')!
    expect(reason).toContain('it exited with 1: SyntaxError: no such word\nNode.js')
  })

  it('does not retry an unrecoverable error, and lets each edge decide on the dependents (C22)', async () => {
    const fatal = `echo '{\\"state\\": \\"failed\\", \\"error\\": {\\"type\\": \\"x\\", \\"message\\": \\"no way\\", \\"recoverable\\": false}}' > status.json`
    const seen = await team.run(`
agents:
  broken: { command: "${fatal}" }
  fails: { command: "true", depends_on: [broken] }
  skips: { command: "true", depends_on: [{ agent: broken, on_failure: skip }] }
  goes: { command: "${MADE} x > outbox/x", depends_on: [{ agent: broken, on_failure: proceed }] }
`)
    expect(statesOf(seen)).toEqual({ broken: 'failed', fails: 'failed', skips: 'skipped', goes: 'completed' })
    expect(seen.run.nodes.get('broken')).toMatchObject({ attempt: 1 })
  })

  it('asks a person by an ordinary request (C9)', async () => {
    const id = await team.start(`
agents:
  fussy: { command: "test -e ../../../go && ${MADE} x > outbox/x", retries: 0, on_error: escalate }
`)
    await team.becomes(id, 'fussy', 'asking')
    const asked = (await team.runs.requestOf(id, 'fussy', 1))!
    expect(asked).toMatchObject({ state: 'open', purpose: 'run' })
    await expect(
      decide(team, { kind: 'operator' }, `req_${asked.id}`, { decision: 'answer', comment: 'maybe' }),
    ).rejects.toMatchObject({ code: 'INVALID_COMMAND' })
    team.write('go', '')
    await decide(team, { kind: 'operator' }, `req_${asked.id}`, {
      decision: 'answer',
      comment: 'retry',
    })
    const seen = await team.ended(id)
    expect(seen.run.head.outcome).toBe('completed')
  })

  it('gives the inputs to a fixer, and tries again with the corrected ones (S4.12)', async () => {
    team.write('number.txt', 'seven\n')
    const id = await team.start(`
agents:
  math:
    inputs: [number.txt]
    command: "expr $(cat inbox/number.txt) + 1 > outbox/sum.txt && ${MADE} > /dev/null"
    retries: 0
    on_error: fix
    fixer: mender
fixers:
  mender: { command: "grep -q seven inbox/inputs/number.txt && mkdir outbox/inputs && echo 7 > outbox/inputs/number.txt; echo Put it right. > outbox/summary.md" }
`)
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('math')).toMatchObject({ state: 'completed', attempt: 2, fixes: 1 })
    expect(team.file(id, 'math', 'outbox', 'sum.txt')).toBe('8\n')
    expect(readFileSync(join(team.plans, 'number.txt'), 'utf8')).toBe('seven\n')
  })

  it('gives a fixer an error report that is too large to read', async () => {
    team.write('go.txt', 'stay\n')
    const seen = await team.run(`
agents:
  wordy:
    inputs: [go.txt]
    command: "grep -q go inbox/go.txt || { head -c 1100000 /dev/zero > outbox/error_report.md; exit 1; }; ${MADE} x > outbox/x"
    retries: 0
    on_error: fix
    fixer: mender
fixers:
  mender: { command: "test $(wc -c < inbox/error_report.md) = 1100000 && mkdir outbox/inputs && echo go > outbox/inputs/go.txt; echo Done. > outbox/summary.md" }
`)
    expect(seen.run.nodes.get('wordy')).toMatchObject({ state: 'completed', fixes: 1 })
  })

  it('takes corrections only from outbox/inputs/ of a fixer', async () => {
    team.write('number.txt', 'seven\n')
    const plan = (more: string) =>
      `
agents:
  math:
    inputs: [number.txt]
    command: "ls inbox > outbox/seen; expr $(cat inbox/number.txt) + 1 > outbox/sum.txt && ${MADE} > /dev/null"
    retries: 0
    on_error: fix
    fixer: mender
    max_fixes: 1
fixers:
  mender: { command: "echo 7 > outbox/number.txt; ${more}echo Put it right. > outbox/summary.md" }
`
    const nothing = await team.start(plan(''))
    await team.until(async () =>
      team.entries.some(({ text }) => text.includes('the fixer put nothing into outbox/inputs/')),
    )
    expect((await team.node(nothing, 'math')).state).not.toBe('completed')
    const id = await team.start(plan('mkdir outbox/inputs; echo 8 > outbox/inputs/number.txt; '))
    await team.ended(id)
    expect(team.file(id, 'math', 'outbox', 'sum.txt')).toBe('9\n')
    expect(team.file(id, 'math', 'outbox', 'seen')).toBe('instructions.md\nnumber.txt\n')
  })

  it('lets inputs and outputs of dependencies share the top folder of the inbox', async () => {
    team.write('given/brief.md', 'the brief\n')
    const id = await team.start(`
agents:
  first: { command: "${MADE} x > outbox/x" }
  second:
    inputs: [{ path: given, to: inbox/ }]
    command: "cat inbox/brief.md inbox/x > outbox/both; ${MADE} > /dev/null"
    depends_on: [{ agent: first, outputs: [outbox/x], copy_to: inbox/ }]
`)
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('second')).toMatchObject({ state: 'completed', reason: '' })
    expect(team.file(id, 'second', 'outbox', 'both')).toBe('the brief\nx\n')
  })

  it('ends an attempt that times out, with all its processes', async () => {
    const id = await team.start(`
agents: { slow: { command: "sh -c 'sleep 300' & sleep 300", timeout: 10s, retries: 0 } }
`)
    await team.until(async () => (await team.node(id, 'slow')).started)
    await team.clock.advance(10_000)
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('slow')!.reason).toContain('timed out after 10 s')
    expect(seen.run.head.alive).toBe(0)
  })

  it('notices an agent that stalls, and one that dies without a report', async () => {
    const id = await team.start(`
agents:
  silent: { command: "echo '{\\"state\\": \\"running\\"}' > status.json; sleep 300", stall_timeout: 30s, retries: 0 }
  dead: { command: "echo '{\\"state\\": \\"running\\"}' > status.json; kill -9 $$", retries: 0 }
`)
    await team.until(async () => (await team.node(id, 'silent')).said === 'running')
    await team.clock.advance(31_000)
    const seen = await team.ended(id)
    expect(seen.run.nodes.get('silent')!.reason).toContain('no sign of life for 30 s')
    expect(seen.run.nodes.get('dead')!.reason).toContain('it was ended by SIGKILL')
  })
})

describe('cancelling', () => {
  it('stops active agents, and starts no waiting ones', async () => {
    const id = await team.start(`
agents: { long: { command: "sleep 300" }, after: { command: "touch ../../../never", depends_on: [long] } }
`)
    await team.until(async () => (await team.node(id, 'long')).started)
    expect(await team.runs.cancel(id, 'ada', 'enough')).toMatchObject({ cancelled: true })
    const seen = await team.ended(id)
    expect(seen.run.head).toMatchObject({ outcome: 'cancelled', alive: 0 })
    expect(statesOf(seen)).toEqual({ long: 'cancelled', after: 'cancelled' })
    expect(existsSync(join(team.plans, 'never'))).toBe(false)
    expect(await team.runs.cancel(id, 'ada', 'again')).toMatchObject({ cancelled: false })
  })
})

describe('resuming', () => {
  const PLAN = `
agents:
  left: { inputs: [l.txt], command: "echo ran >> ../../../left.log; cp inbox/l.txt outbox/l.txt; ${MADE} > /dev/null" }
  right: { inputs: [r.txt], command: "echo ran >> ../../../right.log; cp inbox/r.txt outbox/r.txt; ${MADE} > /dev/null" }
  both: { command: "echo ran >> ../../../both.log; cat inbox/*/?.txt > outbox/both.txt; ${MADE} > /dev/null", depends_on: [left, right] }
`
  const times = (name: string) =>
    readFileSync(join(team.plans, `${name}.log`), 'utf8')
      .trim()
      .split('\n').length

  it('starts one driver, however many callers resume the run when it ends', async () => {
    const id = await team.start(
      'agents: { a: { command: "mkdir ../../../once && exit 1; exec sleep 300", retries: 0 } }',
    )
    const resumed = async () => {
      for (;;) {
        const answer = await team.resume(id).catch((error: Error) => error)
        if (answer instanceof Error || answer.resumed || answer.round > 1) return answer
        await new Promise(setImmediate)
      }
    }
    const answers = await Promise.all([resumed(), resumed(), resumed()])
    expect(answers.filter((answer) => !(answer instanceof Error) && answer.resumed)).toHaveLength(1)
    await team.becomes(id, 'a', 'running')
    expect(await team.runs.cancel(id, 'operator', 'enough')).toEqual({ run_id: id, cancelled: true })
    expect((await team.ended(id)).run.head).toMatchObject({ round: 2, outcome: 'cancelled' })
  })

  it('kills no process of another run with an agent of the same name', async () => {
    const first = await team.start(
      `agents: { run_2: { command: "sleep 1; ${MADE} x > outbox/x", retries: 0 } }`,
    )
    await team.becomes(first, 'run_2', 'running')
    const second = await team.start('agents: { a: { command: "exit 1", retries: 0 } }')
    expect(second).toBe('run_2')
    await team.ended(second)
    expect((await team.ended(first)).run.nodes.get('run_2')!.state).toBe('completed')
  })

  it('runs only agents that depend on a changed input', async () => {
    team.write('l.txt', 'l\n')
    team.write('r.txt', 'r\n')
    const id = await team.start(PLAN)
    await team.ended(id)
    expect(await team.resume(id)).toEqual({ run_id: id, round: 2, resumed: true })
    let seen = await team.ended(id)
    expect([...seen.run.nodes.values()].every(({ cached }) => cached)).toBe(true)
    team.write('r.txt', 'R\n')
    await team.resume(id)
    seen = await team.ended(id)
    expect([times('left'), times('right'), times('both')]).toEqual([1, 2, 2])
    expect(team.file(id, 'both', 'outbox', 'both.txt')).toBe('l\nR\n')
  })

  it('runs an agent again whose outputs were changed', async () => {
    team.write('l.txt', 'l\n')
    team.write('r.txt', 'r\n')
    const id = await team.start(PLAN)
    await team.ended(id)
    writeFileSync(team.pathIn(id, 'left', 'outbox', 'l.txt'), 'other\n')
    await team.resume(id)
    await team.ended(id)
    expect([times('left'), times('right'), times('both')]).toEqual([2, 1, 1])
  })
})

describe('a restart of the service', () => {
  it('finds processes that continued meanwhile, and runs nothing twice', async () => {
    const id = await team.start(`
agents:
  quick: { command: "echo ran >> ../../../quick.log; ${MADE} x > outbox/x" }
  slow: { command: "echo ran >> ../../../slow.log; sleep 1; ${MADE} x > outbox/x", depends_on: [quick] }
  last: { command: "${MADE} x > outbox/x", depends_on: [slow] }
`)
    await team.until(async () => (await team.node(id, 'slow')).started)
    team = await team.reopened()
    const seen = await team.ended(id, 0)
    expect(seen.run.head.outcome).toBe('completed')
    expect(readFileSync(join(team.plans, 'quick.log'), 'utf8')).toBe('ran\n')
    expect(readFileSync(join(team.plans, 'slow.log'), 'utf8')).toBe('ran\n')
    expect(seen.run.nodes.get('slow')).toMatchObject({ attempt: 1 })
  })

  it('uses the exit code of a command that ended meanwhile', async () => {
    const id = await team.start(`
agents: { slow: { command: "echo ran >> ../../../slow.log; while ! test -e ../../../go; do sleep 0.05; done; ${MADE} x > outbox/x; exit 0", retries: 0 } }
`)
    await team.until(async () => (await team.node(id, 'slow')).started)
    await team.engine.close('leave')
    team.write('go', '')
    await new Promise((resolve) => setTimeout(resolve, 300))
    team = await team.reopened()
    const seen = await team.ended(id, 0)
    expect(seen.run.nodes.get('slow')).toMatchObject({ state: 'completed', attempt: 1 })
  })

  it('starts an unknown attempt again without its leftovers (a restored backup)', async () => {
    const log = () => readFileSync(join(team.plans, 'second.log'), 'utf8')
    const begins =
      'cat status.json | grep -c pending >> ../../../second.log; ls outbox >> ../../../second.log'
    const id = await team.start(`
agents:
  first: { command: "while ! test -e ../../../go; do sleep 0.02; done; ${MADE} x > outbox/x", retries: 0 }
  second:
    command: "${begins}; test -e ../../../hold && exec sleep 300; ${MADE} x > outbox/x; echo '{\\"state\\": \\"completed\\"}' > status.json"
    depends_on: [first]
    retries: 0
`)
    await team.becomes(id, 'first', 'running')
    const kept = ['orc.db', 'orc.db-wal'].map((name) => join(team.folder, name))
    for (const file of kept) copyFileSync(file, `${file}.kept`)
    team.write('go', '')
    await team.ended(id)
    expect(log()).toBe('1\n')
    // The store goes back to the copy; the files of the agents stay.
    await team.engine.close('leave')
    for (const file of kept) copyFileSync(`${file}.kept`, file)
    team.write('hold', '')
    team = await team.reopened()
    await team.until(async () => log() === '1\n1\n')
    expect(await team.becomes(id, 'second', 'running')).toMatchObject({ attempt: 1 })
    // The old exit code does not count for the new process.
    await team.engine.close('leave')
    const left = (await readProcesses()).filter(({ mark }) => mark?.endsWith(`${id}/second/attempt/1`))
    expect(left.length).toBeGreaterThan(0)
    for (const { pid } of left) process.kill(pid, 'SIGKILL')
    rmSync(join(team.plans, 'hold'))
    team = await team.reopened()
    const seen = await team.ended(id)
    expect(statesOf(seen)).toEqual({ first: 'completed', second: 'completed' })
    expect(seen.run.nodes.get('second')).toMatchObject({ attempt: 2, losses: 1 })
    expect(log()).toBe('1\n1\n1\n')
  })

  it('restarts attempts that were lost with the machine, without counting a failure', async () => {
    const id = await team.start(`
agents: { slow: { command: "echo ran >> ../../../slow.log; test -e ../../../go || sleep 300; ${MADE} x > outbox/x", retries: 0 } }
`)
    await team.until(async () => (await team.node(id, 'slow')).started)
    await team.engine.close('end')
    team.write('go', '')
    team = await team.reopened()
    const seen = await team.ended(id, 0)
    expect(seen.run.nodes.get('slow')).toMatchObject({ state: 'completed', attempt: 2, losses: 1 })
  })
})

describe('a halt', () => {
  it('suspends processes and timeouts and starts nothing; then everything continues (issue 4, §4)', async () => {
    const id = await team.start(`
agents:
  ticking: { command: "for i in 1 2 3 4 5 6; do echo t >> ../../../ticks; sleep 0.1; done; ${MADE} x > outbox/x", timeout: 1m, retries: 0 }
  after: { command: "${MADE} x > outbox/x", depends_on: [ticking] }
`)
    await team.until(async () => existsSync(join(team.plans, 'ticks')))
    await team.halt.stop('operator', undefined)
    const ticks = () => readFileSync(join(team.plans, 'ticks'), 'utf8').length
    await new Promise((resolve) => setTimeout(resolve, 150))
    const before = ticks()
    await new Promise((resolve) => setTimeout(resolve, 300))
    expect(ticks()).toBe(before)
    await expect(team.start(`agents: { x: { command: "true" } }`)).rejects.toMatchObject({ code: 'HALTED' })
    await team.clock.advance(10 * 60_000)
    await team.halt.go('operator')
    const seen = await team.ended(id, 0)
    expect(seen.run.head.outcome).toBe('completed')
  })
})

it('makes the inbox of a workspace read-only (S4.6)', async () => {
  team.write('in.txt', 'x')
  const { id } = await team.run(`agents: { one: { inputs: [in.txt], command: "${MADE} x > outbox/x" } }`)
  expect(() => chmodSync(team.pathIn(id, 'one', 'inbox'), 0o755)).not.toThrow()
  expect(team.file(id, 'one', 'SKILL.md')).toContain('## Communication Protocol')
})
