/** The cost of delegation: time compared with plain messages, memory of waiting tasks, and timers. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { genesisHash, sealWith } from '../src/audit/chain.ts'
import { openRedactor } from '../src/audit/redact.ts'
import { openSqliteStore } from '../src/store/sqlite/open.ts'
import { createTimers, setTimer } from '../src/store/timers.ts'
import { createDaemon, type Daemon } from '../tests/fakes/daemon.ts'
import { load, perSecond } from './load.ts'
import { type Figure, median } from './report.ts'

const WORKERS = 20
const CONFIG = `
agents:
  Master: {}
  Worker: { parent: Master }
${Array.from({ length: WORKERS }, (_, number) => `  Worker${number}: { parent: Master }`).join('\n')}
limits: { rate: off }
`
const ROUNDS = 5
const COMMANDS = '/api/v1/commands'

export interface DelegationSize {
  cycles: number
  waiting: number
  timers: readonly [few: number, many: number]
}

const FULL: DelegationSize = { cycles: 5000, waiting: 20_000, timers: [1000, 100_000] }

export async function runDelegationBench(size = FULL): Promise<Figure[]> {
  return [await compareWithMessages(size), await weighWaitingTasks(size), await fireTimers(size)]
}

/** Delegates, reports and validates a task (the schema only) with two commands. */
async function compareWithMessages({ cycles }: DelegationSize): Promise<Figure> {
  const daemon = await createDaemon(CONFIG)
  try {
    await daemon.start()
    const token = await daemon.token('Master')
    const worker = await daemon.token('Worker')
    const common = {
      port: Number(new URL(daemon.url).port),
      path: COMMANDS,
      token,
      outstanding: 100,
      batch: 1,
    }
    const rates = { messages: [] as number[], tasks: [] as number[] }
    await load({ ...common, count: cycles, run: 'warm-up' })
    await load({ ...common, count: cycles, run: 'warm-up-tasks', worker })
    // Alternate, so that other load on the machine affects both.
    for (let round = 0; round < ROUNDS; round++) {
      rates.messages.push((await load({ ...common, count: 2 * cycles, run: `m${round}` })).rate)
      rates.tasks.push((await load({ ...common, count: cycles, run: `t${round}`, worker })).rate)
    }
    const [messages, tasks] = [median(rates.messages), median(rates.tasks)]
    return {
      name: 'delegate → report → validated, over HTTP, 100 outstanding',
      baseline: 'plain messages of the same service',
      ratio: tasks / messages,
      target: { atLeast: 0.3 },
      note: `${perSecond(tasks)}, ${perSecond(messages)}`,
    }
  } finally {
    await daemon.close()
  }
}

/** Resident memory in kilobytes, once it is stable. */
async function residentMemory(daemon: Daemon): Promise<number> {
  await new Promise((resolve) => setTimeout(resolve, 1500))
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${daemon.pid()}/status`, 'utf8'))![1])
}

/** Compares a service started with waiting tasks with one started without. */
async function weighWaitingTasks({ waiting }: DelegationSize): Promise<Figure> {
  const daemon = await createDaemon(CONFIG)
  try {
    await daemon.start()
    await daemon.stop()
    const without: number[] = []
    const withThem: number[] = []
    for (const figures of [without, withThem]) {
      for (let run = 0; run < 3; run++) {
        await daemon.start()
        figures.push(await residentMemory(daemon))
        if (figures === without && run === 2) await delegateAll(daemon, waiting)
        await daemon.stop()
      }
    }
    const kib = (median(withThem) - median(without)) / waiting
    return {
      name: `resident memory of ${waiting.toLocaleString('en')} waiting tasks, each`,
      baseline: '1 KiB',
      ratio: kib,
      target: { atMost: 4 },
      note: `${(median(withThem) / 1024).toFixed(0)} MiB, ${(median(without) / 1024).toFixed(0)} MiB without any`,
    }
  } finally {
    await daemon.close()
  }
}

async function delegateAll(daemon: Daemon, count: number) {
  const token = await daemon.token('Master')
  for (let sent = 0; sent < count; sent += 1000) {
    const commands = Array.from({ length: Math.min(1000, count - sent) }, (_, index) => ({
      type: 'delegate',
      to: `Worker${(sent + index) % WORKERS}`,
      task: `Task ${sent + index} that waits for its worker`,
      timeout_seconds: 86_400,
    }))
    const { status } = await daemon.call('POST', COMMANDS, token, commands)
    if (status !== 200) throw new Error(`delegating failed with ${status}`)
  }
}

/** All are due at once, as after a long stop; each acts in its own transaction. */
async function fireTimers({ timers: [few, many] }: DelegationSize): Promise<Figure> {
  const perTimer = { few: [] as number[], many: [] as number[] }
  await timeTimers(few)
  for (let round = 0; round < 3; round++) {
    // Enough small rounds to take about as long, so that other load on the machine affects both.
    const small: number[] = []
    for (let run = 0; run < 5; run++) small.push(await timeTimers(few))
    perTimer.few.push(median(small))
    if (round < 2) perTimer.many.push(await timeTimers(many))
  }
  const [one, other] = [median(perTimer.few), Math.min(...perTimer.many)]
  return {
    name: `${many.toLocaleString('en')} armed timers fire, per timer`,
    baseline: `${few.toLocaleString('en')} of them`,
    ratio: other / one,
    target: { atMost: 1.2 },
    note: `${(1000 * other).toFixed(0)} µs, ${(1000 * one).toFixed(0)} µs`,
  }
}

/** Milliseconds per timer. */
async function timeTimers(count: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-timers-'))
  const identity = { daemon: 'main', address: '', pid: process.pid, host: 'bench', leaseMs: 3600_000 }
  const seal = sealWith(await openRedactor())
  const store = await openSqliteStore(join(folder, 'orc.db'), {
    identity,
    seal,
    genesis: genesisHash,
    now: Date.now,
    checkRows: async () => [],
  })
  const after = (ms: number, callback: () => void) => {
    const timeout = setTimeout(callback, ms)
    return () => clearTimeout(timeout)
  }
  const log = { debug() {}, info() {}, warn() {}, error: console.error }
  const timers = createTimers(store, { now: Date.now, after }, log)
  try {
    const dueAt = Date.now() - 1
    await store.write(async (tx) => {
      for (let n = 0; n < count; n++) await setTimer(tx, 'run', `task_${n}`, dueAt)
    })
    let fired = 0
    const startedAt = performance.now()
    await new Promise<void>((resolve) => {
      timers.on('run', async (tx, ref) => {
        tx.audit({ type: 'bench', class: 'internal', actor: 'bench', text: ref })
        tx.afterCommit(() => {
          if (++fired === count) resolve()
        })
      })
      void timers.start()
    })
    return (performance.now() - startedAt) / count
  } finally {
    timers.stop()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
