/** Kills the service with SIGKILL during a run, repeatedly: nothing is lost, and nothing finished runs again. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFailed, onTestFinished } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import { createDaemon } from '../fakes/daemon.ts'

const ROWS = 6
const WIDTH = 4

function planOf(folder: string): string {
  const agents = Array.from({ length: ROWS * WIDTH }, (_, index) => {
    const needs =
      index < WIDTH ? [] : [`n${index - WIDTH}`, `n${index - WIDTH + (index % WIDTH === 0 ? 1 : -1)}`]
    const work = `echo n${index} >> ${folder}/began.log; sleep 0.2; echo n${index} >> ${folder}/ended.log`
    const made = 'echo It is done. > outbox/summary.md; echo x > outbox/x.txt'
    return `  n${index}: { command: "${work}; ${made}", retries: 0, depends_on: [${needs.join(', ')}] }`
  })
  return `concurrency: 4\nagents:\n${agents.join('\n')}\n`
}

const linesOf = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])

async function startRun(plan: (folder: string) => string) {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-runs-crash-'))
  const daemon = await createDaemon('agents: { Master: {} }')
  onTestFinished(async () => {
    await daemon.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await daemon.start()
  const client = () => createClient({ url: daemon.url, token: daemon.operatorToken() })
  const { run_id } = await client().startRun({ plan: plan(folder), folder })
  async function untilEnded(): Promise<string> {
    let outcome = ''
    for await (const event of client().runEvents(run_id)) if (event.type === 'end') outcome = event.outcome
    return outcome
  }
  return { folder, place: join(folder, 'runs', run_id), daemon, untilEnded }
}

it('continues after kill -9 at any point, and runs no completed agent twice', {
  timeout: 120_000,
}, async () => {
  const { folder, daemon, untilEnded } = await startRun(planOf)
  // At different points each time; a failure prints the pauses.
  const pauses = Array.from({ length: 6 }, () => Math.floor(Math.random() * 500))
  onTestFailed(() => console.error(`killed after ${pauses.join(', ')} ms`))
  for (const pause of pauses) {
    await new Promise((resolve) => setTimeout(resolve, pause))
    await daemon.kill()
    await daemon.start()
  }
  expect(await untilEnded()).toBe('completed')
  const ended = linesOf(join(folder, 'ended.log'))
  expect(new Set(ended).size).toBe(ROWS * WIDTH)
  expect(ended.length).toBe(ROWS * WIDTH)
  expect(linesOf(join(folder, 'began.log')).length).toBe(ROWS * WIDTH)
})

/** A run whose service is killed while its first agents work, and restarts some time after they ended. */
async function endUnseen(plan: (folder: string) => string, awayMs: number) {
  const { folder, place, daemon, untilEnded } = await startRun(plan)
  await expect.poll(() => linesOf(join(folder, 'began.log')).length, { timeout: 10_000 }).toBeGreaterThan(0)
  await daemon.kill()
  await new Promise((resolve) => setTimeout(resolve, awayMs))
  await daemon.start()
  return { folder, place, outcome: await untilEnded() }
}

const DONE = 'echo It is done. > outbox/summary.md; echo x > outbox/x.txt'

it.each([
  ['before the service came back', 2500],
  ['after the service came back', 0],
])(
  'is not held up by what an agent that ended %s has left running',
  async (_, awayMs) => {
    const { outcome } = await endUnseen(
      (folder) => `agents:
  a: { command: "echo a >> ${folder}/began.log; sleep 2; ${DONE}; sleep 300 & exit 0" }
  b: { command: "${DONE}", depends_on: [a] }`,
      awayMs,
    )
    expect(outcome).toBe('completed')
  },
  90_000,
)

it('does not repeat a command that ended while the service was down', async () => {
  const { folder, outcome } = await endUnseen(
    (at) => `agents:
  plain: { command: "echo plain >> ${at}/began.log; sleep 1; ${DONE}" }
  other: { command: "exec sh -c 'echo other >> ${at}/began.log; sleep 1; ${DONE}'" }
  deed: { command: "trap 'rm -f workspace/x' EXIT; echo deed >> ${at}/began.log; sleep 1; ${DONE}" }`,
    3000,
  )
  expect(outcome).toBe('completed')
  expect(linesOf(join(folder, 'began.log')).sort()).toEqual(['deed', 'other', 'plain'])
}, 90_000)

it('recovers although an agent replaced the file of its exit code by a pipe', async () => {
  const { outcome, place } = await endUnseen(
    (at) => `agents:
  a: { command: "rm -f ../_logs/a.1.exit; mkfifo ../_logs/a.1.exit ../_logs/b.1.exit; echo a >> ${at}/began.log; sleep 1; ${DONE}" }
  b: { command: "echo b >> ${at}/began.log; sleep 1; ${DONE}", depends_on: [a] }`,
    2000,
  )
  expect(outcome).toBe('completed')
  expect(existsSync(join(place, 'report.md'))).toBe(true)
}, 90_000)

it('recovers although an agent made the file of its exit code huge', async () => {
  const { outcome } = await endUnseen(
    (at) => `agents:
  a: { command: "truncate -s 3G ../_logs/a.1.exit; echo a >> ${at}/began.log; sleep 1; ${DONE}" }
  b: { command: "echo b >> ${at}/began.log; ${DONE}", depends_on: [a] }`,
    2000,
  )
  expect(outcome).toBe('completed')
}, 90_000)

it('does not wait for, or end, a daemon that an agent started', async () => {
  const { folder, outcome } = await endUnseen(
    (at) => `agents:
  a: { command: "echo a >> ${at}/began.log; setsid sh -c 'while ! test -e ${at}/enough; do sleep 0.1; done; echo lived on > ${at}/lived' & sleep 1; ${DONE}; exit 0" }
  b: { command: "touch ${at}/enough; while ! test -e ${at}/lived; do sleep 0.1; done; ${DONE}", depends_on: [a], timeout: 20s, retries: 0 }`,
    2500,
  )
  expect(outcome).toBe('completed')
  expect(linesOf(join(folder, 'lived'))).toEqual(['lived on'])
}, 90_000)

it('restarts a command that a signal ended while the service was down', async () => {
  const { folder, outcome } = await endUnseen(
    (at) => `agents:
  a: { command: "echo a >> ${at}/began.log; test -e ${at}/second || { touch ${at}/second; setsid sleep 300 & sleep 1; kill -9 $$; }; ${DONE}" }`,
    2500,
  )
  expect(outcome).toBe('completed')
  expect(linesOf(join(folder, 'began.log'))).toEqual(['a', 'a'])
}, 90_000)
