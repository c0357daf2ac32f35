import type { Meter } from '../agents/meter.ts'
import type { Sessions } from '../agents/sessions.ts'
import type { Principal } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import type { AppError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Person } from '../base/person.ts'
import type { Halt } from '../halt/halt.ts'
import type { Conversations } from '../messages/conversations.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { PermissionDialogs } from '../people/permission-dialogs.ts'
import type { Verdict } from '../people/verdict.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Registry } from '../protocol/registry.ts'
import type { Runs } from '../runs/runs.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { Tasks } from '../tasks/tasks.ts'
import type { Channel } from './command-origin.ts'
import type { HaltState } from './halt-state.ts'
import type { RateLimits } from './rate-limits.ts'
import type { Team } from './team.ts'

/** The parts of a running engine, passed to whoever needs several of them. */
export interface EngineParts {
  readonly store: Store
  readonly registry: Registry
  readonly rateLimits: RateLimits
  readonly conversations: Conversations
  readonly mailboxes: Mailboxes
  readonly timers: Timers
  readonly sessions: Sessions
  readonly tasks: Tasks
  readonly runs: Runs
  /** Whether everything is halted: for whoever would act. */
  readonly haltState: HaltState
  /** Stops everything, and lets it go on. */
  readonly halt: Halt
  /** A person's word on a request, in the caller's transaction. */
  decide(tx: Tx, person: Person, request: string, verdict: Verdict): Promise<{ receipt?: Receipt } | AppError>
  /** What a model has to say against a person's answer; not to be waited for in a transaction. */
  whyNoAnswer(person: Person, request: string, verdict: Verdict): Promise<AppError | undefined>
  readonly permissions: PermissionDialogs
  readonly meter: Meter
  readonly clock: Clock
  /** Takes secrets out, for what is cut short before the audit sees it whole. */
  redact(text: string): string
  readonly log: Log
  /** The current team; a reload replaces it. */
  team(): Team
}

/** Whose word a command is, once identity is settled (C3). */
export interface Speaker {
  /** An agent's registered name, or `operator`. */
  readonly name: string
  readonly principal: Principal
  /** Whose word it is where a person speaks, by their token: for the record. */
  readonly person?: string
  /** The operator speaking for an agent: that agent's rules hold, and the audit tells who really spoke. */
  readonly onBehalf: boolean
}

/** What a handler works with: one transaction, one speaker. */
export interface HandlerContext {
  readonly parts: EngineParts
  readonly team: Team
  readonly tx: Tx
  readonly speaker: Speaker
  /** A person has approved exactly this command, so that `ask` counts as `allow`. */
  readonly approved: boolean
  /** Of a command that was held: the speaker's task when it was said, null for none. */
  readonly saidIn?: string | null
  /** How it was said, where that matters. */
  readonly channel?: Channel | undefined
  /** For what is taken or counted in memory: computed once for the command, though its work may run again. */
  once<T>(what: string, compute: () => T): T
}

/** Thrown values would roll the batch back; an expected refusal is returned instead. */
export type Outcome<T> = { ok: true; value: T } | { ok: false; error: AppError }
