import { type Graph, graphOf, type Plan } from './plan.ts'

/** A run as it is stored: one head, and one node for each agent. Times are milliseconds since the epoch. */

/** `preparing`: its inputs are being copied. `retrying`: it waits for the backoff, or for the end of the last attempt. */
export const NODE_STATES = [
  'waiting',
  'ready',
  'preparing',
  'running',
  'validating',
  'retrying',
  'fixing',
  'asking',
  'completed',
  'failed',
  'skipped',
  'cancelled',
] as const
export type NodeState = (typeof NODE_STATES)[number]

/** States that are final within one round. */
const SETTLED_STATES = ['completed', 'failed', 'skipped', 'cancelled'] as const
export type SettledState = (typeof SETTLED_STATES)[number]

export const RUN_OUTCOMES = ['completed', 'partial', 'failed', 'cancelled'] as const
/** `partial`: no agent failed, but some were skipped. */
export type RunOutcome = (typeof RUN_OUTCOMES)[number]

export type NodeTimer = 'deadline' | 'stall' | 'retry' | 'ask'

/** A person's choices for an agent that failed (S4.12). `fixed`: its inputs were corrected, so try again. */
export const DECISIONS = ['retry', 'fixed', 'skip', 'fail'] as const
export type PersonDecision = (typeof DECISIONS)[number]

/** From status.json (S4.2). */
export interface Progress {
  readonly step: string
  readonly done: number
  /** 0: unknown. */
  readonly total: number
}

export interface AttemptError {
  readonly type: string
  readonly message: string
  readonly details: string
  readonly recoverable: boolean
}

export interface RunCost {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null: the price is unknown. */
  readonly cost: number | null
}

export interface OutputFile {
  /** Relative to the workspace: `outbox/…`. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

type EvidenceStep = 'schema' | 'outputs' | 'checks' | 'judge'

/** The result of one validation step. The steps run in the order of C22. */
export interface RunEvidence {
  readonly step: EvidenceStep
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'unavailable'
  readonly text: string
}

export interface NodeAttempt {
  readonly number: number
  readonly orderedAt: number
  /** Null: it never started. */
  readonly startedAt: number | null
  /** When the outcome was known. The process may have run longer. */
  readonly endedAt: number | null
  readonly outcome: 'running' | 'claimed' | 'completed' | 'failed' | 'lost' | 'cancelled'
  readonly why: string
  readonly error: AttemptError | null
  readonly evidence: readonly RunEvidence[]
  readonly spent: RunCost | null
}

/** The outputs of a completed agent, with the hash of the inputs that it made them from. */
export interface NodeResult {
  readonly attempt: number
  readonly inputsHash: string
  readonly outputsHash: string
  readonly outputs: readonly OutputFile[]
  /** The beginning of summary.md. */
  readonly summary: string
}

export interface RunNode {
  readonly name: string
  readonly state: NodeState
  /** Dependencies that are not settled yet. */
  readonly waitingFor: number
  /** Position in the queue of ready nodes. */
  readonly queued: number | null
  /** This and the next three counters cover all rounds, and are part of the keys of effects. */
  readonly preparations: number
  readonly attempt: number
  readonly fixes: number
  readonly asks: number
  /** Attempts since the retries were last reset. */
  readonly tries: number
  /** Fixes in this round. */
  readonly fixed: number
  /** A person or a fixer corrected its inputs: files in `_fixed` replace the originals in this and in later rounds. */
  readonly corrected: boolean
  /** Attempts that were lost with the machine or the service. */
  readonly losses: number
  /** A process of the last attempt may still run. */
  readonly alive: boolean
  readonly fixerAlive: boolean
  /** The worker of the last attempt has started. */
  readonly started: boolean
  /** The last state in status.json of the last attempt. */
  readonly said: 'pending' | 'running'
  readonly due: { readonly kind: Exclude<NodeTimer, 'stall'>; readonly at: number } | null
  readonly stallAt: number | null
  readonly progress: Progress | null
  readonly inputsHash: string | null
  /** Completed without running, because an earlier round completed it with the same inputs. */
  readonly cached: boolean
  /** Result of an earlier round; cleared when a new attempt overwrites it. */
  readonly previousResult: NodeResult | null
  readonly result: NodeResult | null
  readonly attempts: readonly NodeAttempt[]
  /** Explains the state to people. */
  readonly reason: string
  readonly settledAt: number | null
}

export interface RunHead {
  readonly id: string
  /** Grows when a run is resumed. */
  readonly round: number
  readonly createdAt: number
  /** In this round. */
  readonly begunAt: number | null
  readonly deadlineAt: number | null
  readonly endedAt: number | null
  readonly outcome: RunOutcome | null
  readonly cancelled: {
    readonly by: string
    readonly reason: string
    readonly at: number
    readonly timedOut: boolean
  } | null
  /** The report of this round is not written yet. */
  readonly reportPending: boolean
  /** Why the report of this round could not be written. */
  readonly reportFault?: string
  /** Agents whose outputs in `_outputs` differ from the validated ones or are missing, with the reason. */
  readonly unconsolidated?: Readonly<Record<string, string>>
  /** Last position given in the queue of ready nodes. */
  readonly lastQueued: number
  /** These count unsettled nodes, occupied slots, live processes, and settled nodes by state. */
  readonly open: number
  readonly slots: number
  readonly alive: number
  readonly settled: Readonly<Record<SettledState, number>>
}

const SETTLED: ReadonlySet<NodeState> = new Set(SETTLED_STATES)

export function isSettled(state: NodeState): state is SettledState {
  return SETTLED.has(state)
}

/** Skips unknown costs; the sum is null if all are unknown. */
export function sumCosts(all: readonly RunCost[]): RunCost {
  return all.reduce(
    (sum, { inputTokens, outputTokens, cost }) => ({
      inputTokens: sum.inputTokens + inputTokens,
      outputTokens: sum.outputTokens + outputTokens,
      cost: cost === null ? sum.cost : (sum.cost ?? 0) + cost,
    }),
    { inputTokens: 0, outputTokens: 0, cost: null },
  )
}

/** Returns an empty text if no spending is known. */
export function formatSpent({ cost, inputTokens, outputTokens }: RunCost): string {
  const tokens = inputTokens + outputTokens
  if (tokens === 0 && cost === null) return ''
  return cost === null ? `${tokens} tokens` : `${cost.toFixed(cost < 1 ? 4 : 2)} (${tokens} tokens)`
}

/**
 * A run in memory. The plan, the head and the nodes are stored; the rest is derived from them. Only `commit` changes it,
 * with the result of `reduce`.
 */
export interface Run {
  head: RunHead
  readonly graph: Graph
  readonly nodes: Map<string, RunNode>
  /** Ready nodes with their positions, in order. */
  readonly readyQueue: Map<string, number>
}

export interface RunOptions {
  readonly id: string
  readonly plan: Plan
  readonly now: number
}

/** Creates a run. The `begun` event starts it. */
export function createRun({ id, plan, now }: RunOptions): Run {
  const graph = graphOf(plan)
  const nodes = plan.agents.map(({ name }): RunNode => {
    return { name, state: 'waiting', ...EMPTY_NODE, waitingFor: graph.needs.get(name)!.length }
  })
  const head: RunHead = {
    id,
    round: 1,
    createdAt: now,
    begunAt: null,
    deadlineAt: null,
    endedAt: null,
    outcome: null,
    cancelled: null,
    reportPending: false,
    lastQueued: 0,
    open: nodes.length,
    slots: 0,
    alive: 0,
    settled: { completed: 0, failed: 0, skipped: 0, cancelled: 0 },
  }
  return { head, graph, nodes: new Map(nodes.map((node) => [node.name, node])), readyQueue: new Map() }
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
  previousResult: null,
  result: null,
  attempts: Object.freeze([]),
  reason: '',
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
    readyQueue: new Map(queued.map(({ name, queued }) => [name, queued!])),
  }
}

/** Nodes at work or with a process count against the concurrency of the plan. */
export function holdsSlot({ state, alive, fixerAlive }: RunNode): boolean {
  return alive || fixerAlive || state === 'preparing' || state === 'validating'
}

/** True until the run has ended and its report is written. */
export function isRunOpen({ outcome, reportPending }: RunHead): boolean {
  return outcome === null || reportPending
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
