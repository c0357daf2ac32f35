/** The same with a hundred panes, some of them noisy; and the service's memory per idle agent. */
import { median } from '../report.ts'
import type { Child } from './child.ts'
import { startProgress } from './progress.ts'
import { milliseconds, quantile } from './quantile.ts'
import { count, deliverOneByOne } from './raw.ts'
import { anyAgent, idle, openScene } from './scene.ts'
import type { Tally } from './tally.ts'

export interface PanesResult {
  readonly panes: number
  readonly noisy: number
  readonly tally: Tally
  readonly latencies: readonly number[]
  readonly memory: Memory
}

/** Memory of the service in bytes per idle agent, after garbage collection; earlier agents have compiled the code. */
export interface Memory {
  readonly agents: number
  /** The whole increase from the first agent to the last, divided by their number. */
  readonly heap: number
  readonly resident: number
  /** The median increase of ten agents. */
  readonly tenMore: number
}

export interface PanesOptions {
  panes: number
  deliveries: number
}

const QUIET = anyAgent(['sh', '-c', "printf '\\033[?2004h> '; exec cat >/dev/null"])
const NOISY = anyAgent([
  'sh',
  '-c',
  'while :; do printf "\\rcompiling, %s of many\\033[K" $((n += 1)); sleep 0.2; done',
])
const NOISY_SHARE = 0.1
/** Keeps V8 from dropping and recompiling megabytes of old code, which would hide the memory of an agent. */
const MEASURABLE = ['--expose-gc', '--no-flush-bytecode']
const WARM_UP = 100
const BATCH = 50
const AT_ONCE = 10

export async function runPanes({ panes, deliveries }: PanesOptions): Promise<PanesResult> {
  const progress = startProgress(`with ${panes} panes`, deliveries)
  const noisy = named('Noisy', Math.round(panes * NOISY_SHARE))
  const quiet = named('Quiet', panes - noisy.length - 2)
  const others = Object.fromEntries([
    ...quiet.map((name) => [name, { ...QUIET, autostart: false }]),
    ...noisy.map((name) => [name, { ...NOISY, autostart: false }]),
  ])
  const scene = await openScene({ carrier: 'service.ts', others, execArgv: MEASURABLE })
  try {
    await deliverOneByOne(scene, WARM_UP)
    const memory = await measureMemory(scene.child, quiet)
    await startAll(scene.child, [...quiet.slice(memory.agents), ...noisy])
    const latencies: number[] = []
    while (latencies.length < deliveries) {
      const delivered = await deliverOneByOne(scene, Math.min(BATCH, deliveries - latencies.length))
      latencies.push(...delivered.map((one) => one.ms))
      progress.at(latencies.length, `p50 ${milliseconds(quantile(latencies, 0.5))}`)
    }
    progress.end()
    return { panes, noisy: noisy.length, latencies, memory, tally: await count(scene, 0) }
  } finally {
    await scene.close()
  }
}

async function measureMemory(child: Child, names: readonly string[]): Promise<Memory> {
  await startAndStop(child, names)
  const used: NodeJS.MemoryUsage[] = [await child.ask('memory')]
  for (let from = 0; from + AT_ONCE <= names.length; from += AT_ONCE) {
    const batch = names.slice(from, from + AT_ONCE)
    await startAll(child, batch)
    await idle(child, batch)
    used.push(await child.ask('memory'))
  }
  const heap = used.map((usage) => usage.heapUsed + usage.external)
  const agents = (used.length - 1) * AT_ONCE
  return {
    agents,
    heap: (heap.at(-1)! - heap[0]!) / agents,
    resident: (used.at(-1)!.rss - used[0]!.rss) / agents,
    tenMore: median(heap.slice(1).map((bytes, index) => (bytes - heap[index]!) / AT_ONCE)),
  }
}

/** Compiled and cached code exists once, however many agents start. */
async function startAndStop(child: Child, names: readonly string[]) {
  for (let from = 0; from < names.length; from += AT_ONCE) {
    const batch = names.slice(from, from + AT_ONCE)
    await child.ask('start', batch)
    await idle(child, batch)
    await child.ask('stop', batch)
  }
}

function named(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${kind}${index + 1}`)
}

/** Start a few at a time, because the machine has few cores. */
async function startAll(child: Child, names: readonly string[]) {
  for (let from = 0; from < names.length; from += AT_ONCE) {
    await child.ask('start', names.slice(from, from + AT_ONCE))
  }
}
