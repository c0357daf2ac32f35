import { type Graph, graphOf, type Plan } from '../plan.ts'
import { type Attempt, isSettled, type RunHead, type RunNode, type RunOutcome } from '../run.ts'

/**
 * A run in memory. What is stored is the plan, the head and the nodes; the rest follows from them. Only `commit` changes
 * it, with what `reduce` decided, once that is stored.
 */
export interface Run {
  head: RunHead
  readonly graph: Graph
  readonly nodes: Map<string, RunNode>
  /** Those that are ready, in the order of the line. */
  readonly line: Map<string, number>
}

export interface RunOptions {
  readonly id: string
  readonly plan: Plan
  readonly now: number
  /** Whether a person can be asked. */
  readonly attended?: boolean
}

/** A new run, in which nothing happened yet; `begun` sets it going. */
export function createRun({ id, plan, now, attended = true }: RunOptions): Run {
  const graph = graphOf(plan)
  const nodes = plan.agents.map(({ name }) => newNode(name, graph.needs.get(name)!.length))
  const head: RunHead = {
    id,
    round: 1,
    version: 0,
    attended,
    createdAt: now,
    begunAt: null,
    deadlineAt: null,
    endedAt: null,
    outcome: null,
    cancelled: null,
    reportOwed: false,
    lastQueued: 0,
    open: nodes.length,
    slots: 0,
    alive: 0,
    settled: { completed: 0, failed: 0, skipped: 0, cancelled: 0 },
  }
  return { head, graph, nodes: new Map(nodes.map((node) => [node.name, node])), line: new Map() }
}

export function newNode(name: string, waitingFor: number): RunNode {
  return {
    name,
    state: 'waiting',
    waitingFor,
    queued: null,
    preparations: 0,
    attempt: 0,
    fixes: 0,
    asks: 0,
    tries: 0,
    fixed: 0,
    corrected: false,
    losses: 0,
    alive: false,
    fixerAlive: false,
    started: false,
    said: 'pending',
    due: null,
    stallAt: null,
    progress: null,
    inputsHash: null,
    cached: false,
    kept: null,
    result: null,
    attempts: [],
    reason: '',
    because: null,
    readyAt: null,
    settledAt: null,
  }
}

export interface StoredRun {
  readonly plan: Plan
  readonly head: RunHead
  readonly nodes: readonly RunNode[]
}

/** A run as it was stored. */
export function loadRun({ plan, head, nodes }: StoredRun): Run {
  const queued = nodes.filter((node) => node.queued !== null).toSorted((a, b) => a.queued! - b.queued!)
  const stored = new Map(nodes.map((node) => [node.name, node]))
  return {
    head,
    graph: graphOf(plan),
    // As people know it from the plan, in whatever order it was kept.
    nodes: new Map(plan.agents.map(({ name }) => [name, stored.get(name)!])),
    line: new Map(queued.map(({ name, queued }) => [name, queued!])),
  }
}

export function storedRun({ graph, head, nodes }: Run): StoredRun {
  return { plan: graph.plan, head, nodes: [...nodes.values()] }
}

/** What counts against the plan's concurrency: whoever works, and whoever still lives. */
export function holdsSlot({ state, alive, fixerAlive }: RunNode): boolean {
  return alive || fixerAlive || state === 'preparing' || state === 'validating'
}

export function isOpen({ state }: RunNode): boolean {
  return !isSettled(state)
}

/** How a run ended. One that ran out of time failed; what it cancelled does not make that a person's wish. */
export function outcomeOf({ settled, cancelled }: Pick<RunHead, 'settled' | 'cancelled'>): RunOutcome {
  if (cancelled !== null && settled.cancelled > 0) return cancelled.timedOut ? 'failed' : 'cancelled'
  if (settled.failed > 0) return 'failed'
  return settled.skipped > 0 ? 'partial' : 'completed'
}

/** The last attempt, changed. */
export function withAttempt(node: RunNode, changes: Partial<Attempt>): RunNode {
  const last = node.attempts.at(-1)
  return last === undefined
    ? node
    : { ...node, attempts: [...node.attempts.slice(0, -1), { ...last, ...changes }] }
}

/** How the last attempt went; nothing where it is known already, or none was begun. */
export function endAttempt(
  node: RunNode,
  now: number,
  changes: Pick<Attempt, 'outcome' | 'why'> & Partial<Attempt>,
): RunNode {
  const last = node.attempts.at(-1)
  const isOpen = last?.outcome === 'running' || last?.outcome === 'claimed'
  return isOpen ? withAttempt(node, { endedAt: now, ...changes }) : node
}
