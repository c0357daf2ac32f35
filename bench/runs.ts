/** What does a graph of commands cost with everything durable, compared with make, which keeps nothing? */
import { execFileSync, fork, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '../src/client/client.ts'
import { graphOf } from '../src/runs/graph.ts'
import { stepsOf } from '../src/runs/order.ts'
import { readPlan } from '../src/runs/plan.ts'
import { createDaemon, type Daemon } from '../tests/fakes/daemon.ts'
import { type Figure, median } from './report.ts'

const COMMANDS = Number(process.env.BENCH_RUN_COMMANDS ?? 1000)
const CHAIN = Number(process.env.BENCH_RUN_CHAIN ?? 200)
/** Those that do nothing leave no time to make ready for the next one. */
const WORKING_CHAIN = Math.min(CHAIN, 40)
const WORK_SECONDS = 0.1
const WIDTH = 20
const CONCURRENCY = 32
const ROUNDS = 5
/**
 * Where runs and make put their files. An ext4 without a journal does not give recently deleted inodes again, and looks at each of them in
 * turn, which takes longer than anything that is measured here. So nothing is taken away before the end, and every folder
 * in it is put into another part of the disk, where nobody has deleted anything (+T; other file systems do not know it).
 */
function makePlace(): string {
  const place = mkdtempSync(join(tmpdir(), 'orchub-bench-'))
  spawnSync('chattr', ['+T', place], { stdio: 'ignore' })
  return place
}

/** Where it is more than some 30 µs, files are given slowly: to us more of the time than to make, which makes fewer. */
function newFileTime(place: string): number {
  const folder = mkdtempSync(join(place, 'new-'))
  const times = Array.from({ length: 500 }, (_, count) => {
    const began = performance.now()
    writeFileSync(join(folder, `f${count}`), 'x')
    return performance.now() - began
  })
  return median(times)
}

/** Rows of twenty; each waits for two of the row before. The same graph for both. */
function grid(count: number): { name: string; needs: string[] }[] {
  return Array.from({ length: count }, (_, index) => {
    const row = Math.floor(index / WIDTH)
    const above = (offset: number) => `n${(row - 1) * WIDTH + ((index + offset) % WIDTH)}`
    return { name: `n${index}`, needs: row === 0 ? [] : [above(0), above(1)] }
  })
}

const WORK = 'echo done > outbox/out.txt; echo It is done. > outbox/summary.md'

function planOf(count: number, concurrency: number): string {
  const agents = grid(count).map(
    ({ name, needs }) =>
      `  ${name}: { command: "${WORK}", depends_on: [${needs.map((need) => `{ agent: ${need}, outputs: [out.txt] }`).join(', ')}] }`,
  )
  return `concurrency: ${concurrency}\nagents:\n${agents.join('\n')}\n`
}

/** The same files from the same shell commands. Each target has a folder of its own, as each agent has. */
function makefileOf(count: number): string {
  const rules = grid(count).map(
    ({ name, needs }) =>
      `${name}/outbox/summary.md: ${needs.map((need) => `${need}/outbox/summary.md`).join(' ')}\n\t@mkdir -p ${name}/outbox && cd ${name} && { ${WORK}; }\n`,
  )
  const all = grid(count).map(({ name }) => `${name}/outbox/summary.md`)
  return `SHELL = /bin/sh\nall: ${all.join(' ')}\n${rules.join('\n')}`
}

function timeMake(place: string, count: number, jobs: string): number {
  const folder = mkdtempSync(join(place, 'make-'))
  writeFileSync(join(folder, 'Makefile'), makefileOf(count))
  const began = performance.now()
  execFileSync('make', [jobs, '-s', 'all'], { cwd: folder, stdio: 'pipe' })
  return performance.now() - began
}

async function timeRun(place: string, daemon: Daemon, plan: string): Promise<{ ms: number; folder: string }> {
  const client = createClient({ url: daemon.url, token: daemon.operatorToken() })
  const folder = mkdtempSync(join(place, 'run-'))
  const began = performance.now()
  const { run_id } = await client.startRun({ plan, folder })
  let outcome = ''
  for await (const event of client.runEvents(run_id)) if (event.type === 'end') outcome = event.outcome
  const ms = performance.now() - began
  if (outcome !== 'completed') throw new Error(`the run ended: ${outcome}`)
  return { ms, folder: join(folder, 'runs', run_id) }
}

/**
 * From a file that one process writes to the answer of another that saw it: two file events and two processes, as from the
 * word of one agent through the service to the start of the next.
 */
async function roundTripTime(place: string): Promise<number> {
  const [asked, answered] = ['asked-', 'answered-'].map((name) => mkdtempSync(join(place, name)))
  const echo = fork(join(import.meta.dirname, 'file-echo.ts'), [asked!, answered!])
  try {
    await once(echo, 'message')
    return median(await timeEvents(asked!, answered!))
  } finally {
    const ended = once(echo, 'exit')
    echo.kill()
    await ended
  }
}

/** From a file that is written to being told of it, within one process. */
async function eventTime(place: string): Promise<number> {
  const folder = mkdtempSync(join(place, 'inotify-'))
  return median(await timeEvents(folder, folder))
}

async function timeEvents(written: string, watched: string): Promise<number[]> {
  const times: number[] = []
  let heard = (_: string | null) => {}
  const watcher = watch(watched, (_, name) => heard(name))
  for (let count = 0; count < 200; count++) {
    const began = performance.now()
    const told = new Promise<void>((resolve) => {
      heard = (name) => {
        if (name === `f${count}`) resolve()
      }
    })
    writeFileSync(join(written, `f${count}`), 'x')
    await told
    times.push(performance.now() - began)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  watcher.close()
  return times
}

/**
 * Each notes when it began and when it had said that it was done, by the clock that all share. A shell has no clock of its
 * own: each stamp is taken by `date`, right after what it stamps, so that what starting `date` takes is in both.
 */
function chainOf(count: number, workSeconds: number): string {
  const stamp = 'date +%s%N'
  const agents = Array.from({ length: count }, (_, index) => {
    const say = `printf '{\\"state\\": \\"completed\\"}' > status.json`
    const command = `${stamp} > workspace/began; echo x > outbox/x; ${workSeconds === 0 ? '' : `sleep ${workSeconds}; `}echo It is done. > outbox/summary.md; ${say}; ${stamp} > workspace/done`
    const needs = index === 0 ? '' : `, depends_on: [{ agent: n${index - 1}, outputs: [] }]`
    return `  n${index}: { command: "${command}"${needs} }`
  })
  return `agents:\n${agents.join('\n')}\n`
}

async function timeChain(
  place: string,
  daemon: Daemon,
  count: number,
  workSeconds: number,
): Promise<number[]> {
  const { folder } = await timeRun(place, daemon, chainOf(count, workSeconds))
  const at = (index: number, what: string) =>
    Number(readFileSync(join(folder, `n${index}`, 'workspace', what), 'utf8')) / 1e6
  return Array.from({ length: count - 1 }, (_, index) => at(index + 1, 'began') - at(index, 'done'))
}

function timePlanning(count: number): number {
  const text = planOf(count, CONCURRENCY)
  const began = performance.now()
  const read = readPlan(text)
  if (!read.ok) throw new Error(JSON.stringify(read.problems[0]))
  stepsOf(graphOf(read.plan))
  return performance.now() - began
}

export async function runRunsBench(): Promise<Figure[]> {
  mkdirSync(tmpdir(), { recursive: true })
  const place = makePlace()
  const daemon = await createDaemon('agents: { Master: {} }')
  try {
    await daemon.start()
    // Once unmeasured: a service runs for days, and what its first minute takes is shown by start and ready.
    timeMake(place, COMMANDS, '-j')
    await timeRun(place, daemon, planOf(COMMANDS, CONCURRENCY))
    const newFile = newFileTime(place)
    const [makes, runs]: [number[], number[]] = [[], []]
    // In turns, so that whatever else the machine does meets both alike.
    for (let round = 0; round < ROUNDS; round++) {
      // As many at once as is best for make; ours has what a plan has that says nothing of it.
      const jobs = [`-j${2 * availableParallelism()}`, '-j']
      makes.push(Math.min(...jobs.map((most) => timeMake(place, COMMANDS, most))))
      runs.push((await timeRun(place, daemon, planOf(COMMANDS, CONCURRENCY))).ms)
    }
    const [make, ms] = [median(makes), median(runs)]
    const gaps = await timeChain(place, daemon, CHAIN, 0)
    const workingGaps = await timeChain(place, daemon, WORKING_CHAIN, WORK_SECONDS)
    const [roundTrip, event] = [await roundTripTime(place), await eventTime(place)]
    /** "An inotify round trip" can be read either way; both are shown, and the stricter one first. */
    const compared = (name: string, ms: number): Figure[] =>
      [
        { baseline: 'one file event within one process', took: event },
        { baseline: 'one round trip by file events between two processes', took: roundTrip },
      ].map(({ baseline, took }) => ({
        ...{ name, baseline, ratio: ms / took, target: { atMost: 20 } },
        note: `${ms.toFixed(2)} ms, ${took.toFixed(3)} ms`,
      }))
    timePlanning(1000)
    const [small, large] = [median([1, 2, 3].map(() => timePlanning(1000))), timePlanning(10_000)]
    return [
      {
        name: `a graph of ${COMMANDS} trivial commands, everything durable`,
        baseline: 'make -j on the same graph',
        ratio: ms / make,
        target: { atMost: 2 },
        note: `${(ms / 1000).toFixed(2)} s, ${(make / 1000).toFixed(2)} s; median of ${ROUNDS} in turns; a new file took ${(newFile * 1000).toFixed(0)} µs`,
      },
      ...compared(`a chain of ${CHAIN}: from status.json completed to the next start, p50`, median(gaps)),
      ...compared(
        `a chain of ${WORKING_CHAIN} that work ${WORK_SECONDS} s each: the same, p50`,
        median(workingGaps),
      ),
      {
        name: 'planning 10,000 agents',
        baseline: '10 × planning 1,000',
        ratio: large / (10 * small),
        target: { atMost: 1.5 },
        note: `${large.toFixed(0)} ms, ${small.toFixed(0)} ms`,
      },
    ]
  } finally {
    await daemon.close()
    rmSync(place, { recursive: true, force: true })
  }
}
