/** A plan being carried out, as it is stored: one head, and one node for each agent. Times are milliseconds since the epoch. */

/** `preparing`: inputs are being copied. `retrying`: waits for its pause, or for the end of the attempt before. */
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

/** Nothing leaves these within one round. */
export const SETTLED_STATES = ['completed', 'failed', 'skipped', 'cancelled'] as const
export type SettledState = (typeof SETTLED_STATES)[number]

export const RUN_OUTCOMES = ['completed', 'partial', 'failed', 'cancelled'] as const
/** `partial`: nobody failed, and someone was skipped. */
export type RunOutcome = (typeof RUN_OUTCOMES)[number]

export const NODE_TIMERS = ['deadline', 'stall', 'retry', 'ask'] as const
export type NodeTimer = (typeof NODE_TIMERS)[number]

/** What a person may decide about an agent that failed (S4.12). `fixed`: they changed its inputs; it is tried again. */
export const DECISIONS = ['retry', 'fixed', 'skip', 'fail'] as const
export type PersonDecision = (typeof DECISIONS)[number]

/** From status.json (S4.2). */
export interface Progress {
  readonly step: string
  readonly done: number
  /** 0 where it is not known. */
  readonly total: number
}

export interface AttemptError {
  readonly type: string
  readonly message: string
  readonly details: string
  readonly recoverable: boolean
}

export interface Spent {
  readonly inputTokens: number
  readonly outputTokens: number
  /** Null: no price is known. */
  readonly cost: number | null
}

export interface OutputFile {
  /** From the workspace: `outbox/…`. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

export type EvidenceStep = 'schema' | 'outputs' | 'checks' | 'judge'

/** In the order of C22. */
export interface RunEvidence {
  readonly step: EvidenceStep
  readonly outcome: 'passed' | 'failed' | 'skipped' | 'unavailable'
  readonly text: string
}

export interface Attempt {
  readonly number: number
  readonly orderedAt: number
  /** Null: it never began. */
  readonly startedAt: number | null
  /** When it was known how it went; its process may have lived on. */
  readonly endedAt: number | null
  readonly outcome: 'running' | 'claimed' | 'completed' | 'failed' | 'lost' | 'cancelled'
  readonly why: string
  readonly error: AttemptError | null
  readonly evidence: readonly RunEvidence[]
  readonly spent: Spent | null
}

/** What a completed agent made, and from what. */
export interface Result {
  readonly attempt: number
  readonly inputsHash: string
  readonly outputsHash: string
  readonly outputs: readonly OutputFile[]
  /** Its summary.md, or the beginning of it. */
  readonly summary: string
}

export interface RunNode {
  readonly name: string
  readonly state: NodeState
  /** Dependencies that are not settled yet. */
  readonly waitingFor: number
  /** Its place in the line of those that are ready. */
  readonly queued: number | null
  /** Preparations ordered so far, in all rounds; with the attempts, fixes and asks they make the keys of effects. */
  readonly preparations: number
  readonly attempt: number
  readonly fixes: number
  readonly asks: number
  /** Attempts since it was last given a fresh start: how many retries are left. */
  readonly tries: number
  /** Fixes in this round. */
  readonly fixed: number
  /** A person or a fixer has put its inputs right: what is in `_fixed` counts from then on, in later rounds as well. */
  readonly corrected: boolean
  /** Attempts that ended with the machine, not by the agent's fault. */
  readonly losses: number
  /** A process of the last attempt may live. */
  readonly alive: boolean
  readonly fixerAlive: boolean
  /** The last attempt has begun. */
  readonly started: boolean
  /** What status.json of the last attempt said last. */
  readonly said: 'pending' | 'running'
  readonly due: { readonly kind: Exclude<NodeTimer, 'stall'>; readonly at: number } | null
  readonly stallAt: number | null
  readonly progress: Progress | null
  readonly inputsHash: string | null
  /** Completed without being run: an earlier round had done it from the same inputs. */
  readonly cached: boolean
  /** Of an earlier round; gone as soon as a new attempt overwrites it. */
  readonly kept: Result | null
  readonly result: Result | null
  readonly attempts: readonly Attempt[]
  /** Why it is as it is, for people. */
  readonly reason: string
  /** The dependency because of which it failed or was skipped. */
  readonly because: string | null
  readonly readyAt: number | null
  readonly settledAt: number | null
}

export interface RunHead {
  readonly id: string
  /** Grows when a run is resumed. */
  readonly round: number
  /** Grows with every accepted happening; part of the keys of effects. */
  readonly version: number
  /** False: nobody is there to be asked; what would be asked fails instead. */
  readonly attended: boolean
  readonly createdAt: number
  /** Of this round. */
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
  readonly reportOwed: boolean
  /** Why there is none of this round, where that could not be helped. */
  readonly reportFault?: string
  /** Whose outputs are not in `_outputs` as they were validated, and why. */
  readonly unconsolidated?: Readonly<Record<string, string>>
  /** Last place given in the line of those that are ready. */
  readonly lastQueued: number
  /** Nodes that are not settled, that hold a slot, that have a living process; and the settled by state. */
  readonly open: number
  readonly slots: number
  readonly alive: number
  readonly settled: Readonly<Record<SettledState, number>>
}

const SETTLED: ReadonlySet<NodeState> = new Set(SETTLED_STATES)

export function isSettled(state: NodeState): state is SettledState {
  return SETTLED.has(state)
}

/** Returns an empty text if nothing was spent, as far as is known. */
export function formatSpent({ cost, inputTokens, outputTokens }: Spent): string {
  const tokens = inputTokens + outputTokens
  if (tokens === 0 && cost === null) return ''
  return cost === null ? `${tokens} tokens` : `${cost.toFixed(cost < 1 ? 4 : 2)} (${tokens} tokens)`
}
