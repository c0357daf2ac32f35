/** The same with a hundred panes, some of them noisy; and what an idle agent costs the service in memory. */
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
  /** Bytes of the service for one more idle agent. */
  readonly memory: { readonly heap: number; readonly resident: number; readonly agents: number }
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
const WARM_UP = 100
const LOADING = 30
const BATCH = 50
const AT_ONCE = 10

export async function runPanes({ panes, deliveries }: PanesOptions): Promise<PanesResult> {
  const progress = startProgress(`with ${panes} panes`, deliveries)
  const noisy = named('Noisy', Math.round(panes * NOISY_SHARE))
  const silent = named('Quiet', panes - noisy.length - 2)
  const [first, quiet] = [silent.slice(0, LOADING), silent.slice(LOADING)]
  const others = Object.fromEntries([
    ...silent.map((name) => [name, { ...QUIET, autostart: false }]),
    ...noisy.map((name) => [name, { ...NOISY, autostart: false }]),
  ])
  const scene = await openScene({ carrier: 'service.ts', others, execArgv: ['--expose-gc'] })
  try {
    await deliverOneByOne(scene, WARM_UP)
    // Before the count: what is loaded and compiled with the first ones is not the cost of each.
    await startAll(scene.child, first)
    await idle(scene.child, first)
    const memory = await measureMemory(scene.child, quiet)
    await startAll(scene.child, noisy)
    const latencies: number[] = []
    while (latencies.length < deliveries) {
      const delivered = await deliverOneByOne(scene, Math.min(BATCH, deliveries - latencies.length))
      latencies.push(...delivered.map((one) => one.ms))
      progress.at(latencies.length, `p50 ${milliseconds(quantile(latencies, 0.5))}`)
    }
    progress.end()
    return {
      panes,
      noisy: noisy.length,
      latencies,
      tally: await count(scene, 0),
      memory,
    }
  } finally {
    await scene.close()
  }
}

/** The median of what ten more add: a function that is compiled or a pool that is filled meanwhile is no agent's cost. */
async function measureMemory(child: Child, names: readonly string[]): Promise<PanesResult['memory']> {
  const heap: number[] = []
  const first = await child.ask<NodeJS.MemoryUsage>('memory')
  let before = first
  for (let from = 0; from + AT_ONCE <= names.length; from += AT_ONCE) {
    const batch = names.slice(from, from + AT_ONCE)
    await startAll(child, batch)
    await idle(child, batch)
    const after = await child.ask<NodeJS.MemoryUsage>('memory')
    heap.push((after.heapUsed + after.external - before.heapUsed - before.external) / AT_ONCE)
    before = after
  }
  const agents = heap.length * AT_ONCE
  return { heap: median(heap), resident: (before.rss - first.rss) / agents, agents }
}

function named(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${kind}${index + 1}`)
}

/** A few at a time, as the machine has only so many cores. */
async function startAll(child: Child, names: readonly string[]) {
  for (let from = 0; from < names.length; from += AT_ONCE) {
    await child.ask('start', names.slice(from, from + AT_ONCE))
  }
}
