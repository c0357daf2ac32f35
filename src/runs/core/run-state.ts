import { type Graph, graphOf, type Plan } from '../plan.ts'
import { isSettled, type NodeAttempt, type RunHead, type RunNode, type RunOutcome } from '../run.ts'

/**
 * A run in memory. The plan, the head and the nodes are stored; the rest is derived from them. Only `commit` changes it,
 * with the result of `reduce`.
 */
export interface Run {
  head: RunHead
  readonly graph: Graph
  readonly nodes: Map<string, RunNode>
  /** Ready nodes with their positions, in order. */
  readonly line: Map<string, number>
}

export interface RunOptions {
  readonly id: string
  readonly plan: Plan
  readonly now: number
  /** True if a person can be asked. */
  readonly attended?: boolean
}

/** Makes a new run; the `begun` event starts it. */
export function createRun({ id, plan, now, attended = true }: RunOptions): Run {
  const graph = graphOf(plan)
  const nodes = plan.agents.map(({ name }): RunNode => {
    return { name, state: 'waiting', ...EMPTY_NODE, waitingFor: graph.needs.get(name)!.length }
  })
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

/** A node before its first event. The store leaves out fields with these values. */
export const EMPTY_NODE = Object.freeze({
  waitingFor: 0,
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
  attempts: Object.freeze([]),
  reason: '',
  because: null,
  readyAt: null,
  settledAt: null,
} satisfies Omit<RunNode, 'name' | 'state'>)

interface RunParts {
  readonly plan: Plan
  readonly head: RunHead
  readonly nodes: readonly RunNode[]
}

/** Rebuilds a run from its stored parts. */
export function loadRun({ plan, head, nodes }: RunParts): Run {
  const queued = nodes.filter((node) => node.queued !== null).toSorted((a, b) => a.queued! - b.queued!)
  const stored = new Map(nodes.map((node) => [node.name, node]))
  return {
    head,
    graph: graphOf(plan),
    // In the order of the plan.
    nodes: new Map(plan.agents.map(({ name }) => [name, stored.get(name)!])),
    line: new Map(queued.map(({ name, queued }) => [name, queued!])),
  }
}

export function storedRun({ graph, head, nodes }: Run): RunParts {
  return { plan: graph.plan, head, nodes: [...nodes.values()] }
}

/** Nodes at work or with a process count against the concurrency of the plan. */
export function holdsSlot({ state, alive, fixerAlive }: RunNode): boolean {
  return alive || fixerAlive || state === 'preparing' || state === 'validating'
}

export function isOpen({ state }: RunNode): boolean {
  return !isSettled(state)
}

/** A run that timed out has failed, although its nodes are cancelled. */
export function outcomeOf({ settled, cancelled }: Pick<RunHead, 'settled' | 'cancelled'>): RunOutcome {
  if (cancelled !== null && settled.cancelled > 0) return cancelled.timedOut ? 'failed' : 'cancelled'
  if (settled.failed > 0) return 'failed'
  return settled.skipped > 0 ? 'partial' : 'completed'
}

/** Changes the last attempt. */
export function withAttempt(node: RunNode, changes: Partial<NodeAttempt>): RunNode {
  const last = node.attempts.at(-1)
  return last === undefined
    ? node
    : { ...node, attempts: [...node.attempts.slice(0, -1), { ...last, ...changes }] }
}

/** Ends the last attempt, if it is still open. */
export function endAttempt(
  node: RunNode,
  now: number,
  changes: Pick<NodeAttempt, 'outcome' | 'why'> & Partial<NodeAttempt>,
): RunNode {
  const last = node.attempts.at(-1)
  const isOpen = last?.outcome === 'running' || last?.outcome === 'claimed'
  return isOpen ? withAttempt(node, { endedAt: now, ...changes }) : node
}
