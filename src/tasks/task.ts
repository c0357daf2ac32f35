/** What a delegation is doing (C6). The last four are ends: nothing leaves them. */
export const TASK_STATES = [
  'pending',
  'analyzing',
  'executing',
  'waiting_child',
  'waiting_parent',
  'waiting_user',
  'waiting_approval',
  'blocked',
  'completed',
  'failed',
  'cancelled',
  'skipped',
] as const
export type TaskState = (typeof TASK_STATES)[number]

export const END_STATES = ['completed', 'failed', 'cancelled', 'skipped'] as const
export type EndState = (typeof END_STATES)[number]
export type LiveState = Exclude<TaskState, EndState>

/** The edges of the state machine. What happens outside (a report, a timer) is translated into at most one of them. */
export const TASK_EVENTS = [
  'queue',
  'start',
  'execute',
  'await_child',
  'await_parent',
  'await_user',
  'await_approval',
  'block',
  'complete',
  'fail',
  'cancel',
  'skip',
] as const
export type TaskEvent = (typeof TASK_EVENTS)[number]

export const TASK_TIMERS = ['ack', 'retry', 'deadline', 'validation', 'wait'] as const
export type TaskTimer = (typeof TASK_TIMERS)[number]

export const REPORT_STATUSES = ['completed', 'partial', 'needs_help'] as const
export type ReportStatus = (typeof REPORT_STATUSES)[number]

/** `help`: the delegator must decide how it goes on. `takeover`: a person does the work and reports it. */
export const QUESTION_KINDS = ['query', 'user', 'approval', 'help', 'extension', 'takeover'] as const
export type QuestionKind = (typeof QUESTION_KINDS)[number]

/** Something a task waits for someone to say. It is open as long as it is in the task's list. */
export interface Question {
  id: string
  kind: QuestionKind
  /** Who is to answer: an agent or the operator. */
  to: string
  text: string
  /** For a question to an agent. A person's question expires with its human request (C9), which has its own timer. */
  expiresAt: number | null
  /** Of an extension: how much more time. */
  seconds?: number
}

/** Who judges a claim: a model of orc.yaml, or an agent that reviews. */
export interface Judge {
  kind: 'model' | 'agent'
  name: string
}

/** In the order in which a claim goes through them (C22). */
export const VALIDATION_STEPS = ['schema', 'checks', 'judge'] as const
export type ValidationStep = (typeof VALIDATION_STEPS)[number]

/** `skipped`: there was nothing to do. `unavailable`: there was, and it could not be done; that never counts as passed. */
export const EVIDENCE_OUTCOMES = ['passed', 'failed', 'skipped', 'unavailable'] as const
export type EvidenceOutcome = (typeof EVIDENCE_OUTCOMES)[number]

/** Why we believe, or don't, that the work is done. */
export interface Evidence {
  claim: number
  step: ValidationStep
  outcome: EvidenceOutcome
  /** For the worker, the judge and people. */
  text: string
  at: number
  /** Who judged. */
  by?: string
  findings?: Findings
}

/** What the checks of a claim came to. */
export interface Findings {
  checks: readonly CheckResult[]
  /** What they looked at, where the worker's folder is a git repository. */
  commit?: string
  /** Not all of it was committed. */
  dirty?: boolean
}

export interface CheckResult {
  name: string
  passed: boolean
  /** Null when it did not end by itself. */
  exitCode: number | null
  /** How it ended, in words. */
  why: string
  /** The beginning and the end of what it printed. */
  output: string
  ms: number
}

/** A REPORT of completed that is being validated. */
export interface Claim {
  /** Results of checks and judges name it, so that those of an earlier claim count for nothing. */
  number: number
  result: string
  step: 'checks' | 'judge'
  /** Once an agent was asked to judge it. */
  review?: Review
  validator?: Validator
}

/** The daemon that checks a claim or has a model judge it. */
export interface Validator {
  daemon: string
  /** Of that start of it. */
  epoch: number
  /** Its turn has come; before, it stands in line there. */
  begun: boolean
}

export interface Review {
  /** The reviewer's runtime has taken the last message about it. */
  taken: boolean
  reminders: number
}

export interface FailedAttempt {
  attempt: number
  at: number
  why: string
}

/** One delegation, as it is stored. Times are milliseconds since the epoch. */
export interface Task {
  id: string
  /** The delegator's own task that this one serves. */
  parent: string | null
  root: string
  delegator: string
  agent: string
  text: string
  context: Readonly<Record<string, unknown>>
  /** False: the delegator goes on without it, and it outlives its parent. */
  requiresResponse: boolean
  /** A task without a parent has depth 1. */
  depth: number
  /** How many replies led to it: for the loop breaker. */
  hop: number
  /** Names of the checks that a claim must pass. */
  checks: readonly string[]
  judge: Judge | null
  /** What the reported result must fit, where the delegator says so. */
  resultSchema: Readonly<Record<string, unknown>> | null
  timeoutMs: number
  /** The first try and its retries (C7). */
  maxAttempts: number
  createdAt: number

  state: TaskState
  attempt: number
  /** The attempts before this one. */
  failures: readonly FailedAttempt[]
  /** Grows with every accepted event; part of the keys of effects. */
  version: number
  acknowledgedAt: number | null
  endedAt: number | null
  result: string | null
  /** Why it ended. */
  reason: string | null
  /**
   * The one clock that runs now. Waits for answers have theirs in `questions`. `since`: of a retry that waits for its
   * worker's circuit, when that began.
   */
  due: { kind: Exclude<TaskTimer, 'wait'>; at: number; since?: number } | null
  /** Working time left: the clock stands still while the task waits for others, who have clocks of their own. */
  remainingMs: number
  questions: readonly Question[]
  /** Ids of all reports, questions and delegations that were taken: a doubled one is recognised. */
  seen: readonly string[]
  claim: Claim | null
  claims: number
  evidence: readonly Evidence[]
  /** Claims that failed validation and were sent back. */
  rejections: number
  /** Since the worker last got something to go on. */
  reminders: number
  followUps: number
  delegations: number
  /** Children delegated since the parent was last woken; when all of them have ended, it is woken, once. */
  awaiting: readonly string[]
  /** Messages sent to the worker so far; the last is unread until the runtime takes it. */
  sent: number
  unread: boolean
  interrupts: number
  /** An interrupt that is ordered and not yet confirmed. */
  interrupting: boolean
  takenOver: boolean
  /** While a person or a limit holds the task back: the state it would be in. */
  held: { by: string; reason: string; at: number; state: LiveState } | null
}

const ENDS: ReadonlySet<TaskState> = new Set(END_STATES)

export function isEnd(state: TaskState): state is EndState {
  return ENDS.has(state)
}

/** The agent whose judgement the task waits for. */
export function reviewerOf({ claim, judge }: Pick<Task, 'claim' | 'judge'>): string | null {
  return claim?.review === undefined || judge === null ? null : judge.name
}
