/** States of a delegation (C6). The last four are end states. */
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

export const DEFAULT_TASK_TIMEOUT_MS = 300_000

export const TASK_TIMERS = ['ack', 'retry', 'deadline', 'validation', 'wait'] as const
export type TaskTimer = (typeof TASK_TIMERS)[number]

export const REPORT_STATUSES = ['completed', 'partial', 'needs_help'] as const
export type ReportStatus = (typeof REPORT_STATUSES)[number]

/** `help`: the delegator must decide how to continue. `takeover`: a person does the work and reports it. */
export const QUESTION_KINDS = ['query', 'user', 'approval', 'help', 'extension', 'takeover'] as const
export type QuestionKind = (typeof QUESTION_KINDS)[number]

/** A question of a task, open as long as it is in the task's list. */
export interface TaskQuestion {
  id: string
  kind: QuestionKind
  /** The agent that must answer, or the operator. */
  to: string
  text: string
  /** For a question to an agent. A question to a person expires with its human request (C9), which has its own timer. */
  expiresAt: number | null
  /** For an extension: the requested time. */
  seconds?: number
}

/** Judges claims: a model of orc.yaml, or an agent that reviews. */
export interface Judge {
  kind: 'model' | 'agent'
  name: string
}

/** In the order of validation (C22). */
export const VALIDATION_STEPS = ['schema', 'checks', 'judge'] as const
type ValidationStep = (typeof VALIDATION_STEPS)[number]

/** `skipped`: the step isn't configured. `unavailable`: the step could not run, which never counts as passed. */
export const EVIDENCE_OUTCOMES = ['passed', 'failed', 'skipped', 'unavailable'] as const
type EvidenceOutcome = (typeof EVIDENCE_OUTCOMES)[number]

/** Result of one validation step. */
export interface ClaimEvidence {
  claim: number
  step: ValidationStep
  outcome: EvidenceOutcome
  /** For the worker, the judge and people. */
  text: string
  at: number
  /** The judge. */
  by?: string
  findings?: Findings
}

/** Results of the checks of a claim. */
export interface Findings {
  checks: readonly CheckResult[]
  /** The commit that was checked, if the worker's folder is a git repository. */
  commit?: string
  /** The folder had uncommitted changes. */
  dirty?: boolean
}

export interface CheckResult {
  name: string
  passed: boolean
  /** Null if the check was stopped. */
  exitCode: number | null
  /** How the check ended. */
  why: string
  /** Beginning and end of the output. */
  output: string
  ms: number
}

/** A report of completed that is being validated. */
export interface TaskClaim {
  /** Results of checks and judges name the claim, so results of an earlier claim are ignored. */
  number: number
  result: string
  step: 'checks' | 'judge'
  /** Set once an agent was asked to judge. */
  review?: ClaimReview
  validator?: Validator
}

/** The daemon that runs a claim's checks or its model judge. */
export interface Validator {
  daemon: string
  /** Counts the daemon's starts. */
  epoch: number
  /** False while the claim is queued there. */
  begun: boolean
}

export interface ClaimReview {
  /** The reviewer's runtime took the last message about the claim. */
  taken: boolean
  reminders: number
}

interface FailedAttempt {
  attempt: number
  at: number
  why: string
}

/** A delegation, as stored. Times are milliseconds since the epoch. */
export interface Task {
  id: string
  /** The delegator's own task that this one serves. */
  parent: string | null
  root: string
  delegator: string
  agent: string
  text: string
  context: Readonly<Record<string, unknown>>
  /** False: the delegator doesn't wait for it, and the task outlives its parent. */
  requiresResponse: boolean
  /** A task without a parent has depth 1. */
  depth: number
  /** Number of replies that led to the task, for the loop breaker. */
  hop: number
  /** Names of the checks that a claim must pass. */
  checks: readonly string[]
  judge: Judge | null
  /** JSON schema of the result, if the delegator set one. */
  resultSchema: Readonly<Record<string, unknown>> | null
  timeoutMs: number
  /** The first attempt and its retries (C7). */
  maxAttempts: number
  createdAt: number

  state: TaskState
  attempt: number
  /** Earlier attempts. */
  failures: readonly FailedAttempt[]
  /** Increases with every accepted event; part of the keys of effects. */
  version: number
  acknowledgedAt: number | null
  endedAt: number | null
  result: string | null
  /** Why the task ended. */
  reason: string | null
  /**
   * The running timer. Timers of answers are in `questions`. `since`: when a retry started to wait for its worker's
   * circuit breaker.
   */
  due: { kind: Exclude<TaskTimer, 'wait'>; at: number; since?: number } | null
  /** Working time left. It stops while the task waits for others, because they have their own timers. */
  remainingMs: number
  questions: readonly TaskQuestion[]
  /** Ids of all accepted reports, questions and delegations, to recognize duplicates. */
  seen: readonly string[]
  claim: TaskClaim | null
  claims: number
  evidence: readonly ClaimEvidence[]
  /** Claims that failed validation and were sent back. */
  rejections: number
  /** Reminders since the last other message to the worker. */
  reminders: number
  followUps: number
  delegations: number
  /** Children delegated since the last wake. When all of them have ended, the task is woken once. */
  awaiting: readonly string[]
  /** Number of messages to the worker. The last is `unread` until the runtime takes it. */
  sent: number
  unread: boolean
  interrupts: number
  /** An interrupt was ordered and isn't confirmed yet. */
  interrupting: boolean
  takenOver: boolean
  /** Set while the task is held, with the state that it returns to. */
  held: { by: string; reason: string; at: number; state: LiveState } | null
}

/** Initial values. A stored task omits the fields that still have them, so documents of older versions lack newer fields. */
export const INITIAL_FIELDS = {
  parent: null,
  context: {},
  requiresResponse: false,
  depth: 1,
  hop: 0,
  checks: [],
  judge: null,
  resultSchema: null,
  failures: [],
  acknowledgedAt: null,
  endedAt: null,
  result: null,
  reason: null,
  due: null,
  questions: [],
  seen: [],
  claim: null,
  claims: 0,
  evidence: [],
  rejections: 0,
  reminders: 0,
  followUps: 0,
  delegations: 0,
  awaiting: [],
  sent: 0,
  unread: false,
  interrupts: 0,
  interrupting: false,
  takenOver: false,
  held: null,
} as const satisfies Partial<Task>

const ENDS: ReadonlySet<TaskState> = new Set(END_STATES)

export function isEnd(state: TaskState): state is EndState {
  return ENDS.has(state)
}

/** The agent that the task asked for a judgement. */
export function reviewerOf({ claim, judge }: Pick<Task, 'claim' | 'judge'>): string | null {
  return claim?.review === undefined || judge === null ? null : judge.name
}
