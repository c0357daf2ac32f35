/** Compares a graph of commands, with everything durable, with `make`, which stores nothing. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '../src/client/client.ts'
import { readPlan } from '../src/runs/plan/read-plan.ts'
import { graphOf, stepsOf } from '../src/runs/plan.ts'
import { createDaemon, type Daemon } from '../tests/fakes/daemon.ts'
import { type Figure, median } from './report.ts'

const COMMANDS = Number(process.env.BENCH_RUN_COMMANDS ?? 1000)
const WIDTH = 20
const CONCURRENCY = 32
const ROUNDS = 5

/**
 * The folder for the files of runs and make. An ext4 without a journal skips recently deleted inodes one by one, which
 * takes longer than anything measured here. So nothing is deleted before the end, and `chattr +T`, where supported, puts
 * each folder into another part of the disk.
 */
function makePlace(): string {
  const place = mkdtempSync(join(tmpdir(), 'orchub-bench-'))
  spawnSync('chattr', ['+T', place], { stdio: 'ignore' })
  return place
}

/** Rows of twenty; each node depends on two of the row before. */
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

/** Makes the same files with the same shell commands, each target in its own folder like an agent. */
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

async function timeRun(place: string, daemon: Daemon, plan: string): Promise<number> {
  const client = createClient({ url: daemon.url, token: daemon.operatorToken() })
  const folder = mkdtempSync(join(place, 'run-'))
  const began = performance.now()
  const { run_id } = await client.startRun({ plan, folder })
  let outcome = ''
  for await (const event of client.runEvents(run_id)) if (event.type === 'end') outcome = event.outcome
  const ms = performance.now() - began
  if (outcome !== 'completed') throw new Error(`the run ended: ${outcome}`)
  return ms
}

function timePlanning(count: number): number {
  const text = planOf(count, CONCURRENCY)
  const began = performance.now()
  const read = readPlan(text)
  if (!read.ok) throw new Error(JSON.stringify(read.error[0]))
  stepsOf(graphOf(read.value))
  return performance.now() - began
}

export async function runRunsBench(): Promise<Figure[]> {
  mkdirSync(tmpdir(), { recursive: true })
  const place = makePlace()
  const daemon = await createDaemon('agents: { Master: {} }')
  try {
    await daemon.start()
    // Warm up: a service runs for days; `start` and `ready` measure its first minute.
    timeMake(place, COMMANDS, '-j')
    await timeRun(place, daemon, planOf(COMMANDS, CONCURRENCY))
    const [makes, runs]: [number[], number[]] = [[], []]
    // Alternate, so that other load on the machine affects both.
    for (let round = 0; round < ROUNDS; round++) {
      // Make gets its better concurrency; the run uses the default of a plan.
      const jobs = [`-j${2 * availableParallelism()}`, '-j']
      makes.push(Math.min(...jobs.map((most) => timeMake(place, COMMANDS, most))))
      runs.push(await timeRun(place, daemon, planOf(COMMANDS, CONCURRENCY)))
    }
    const [make, ms] = [median(makes), median(runs)]
    timePlanning(1000)
    const [small, large] = [median([1, 2, 3].map(() => timePlanning(1000))), timePlanning(10_000)]
    return [
      {
        name: `a graph of ${COMMANDS} trivial commands, everything durable`,
        baseline: 'make -j on the same graph',
        ratio: ms / make,
        target: { atMost: 4 },
        note: `${(ms / 1000).toFixed(2)} s, ${(make / 1000).toFixed(2)} s; median of ${ROUNDS} in turns`,
      },
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
