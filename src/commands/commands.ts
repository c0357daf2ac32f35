/** The interface between the door (handle.ts) and the rooms that handle commands. */
import type { z } from 'zod'
import type { Principal } from '../base/agent.ts'
import type { AppError } from '../base/errors.ts'
import {
  BUILT_IN_COMMANDS,
  type CommandDefinition,
  type CommandType,
  type FieldsOf,
} from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Decision } from '../rules/rule.ts'
import type { Tx } from '../store/store.ts'
import type { Team } from './team.ts'

/** How a command arrived, apart from who sent it. */
export interface CommandOrigin {
  /** The same key from the same speaker acts once (C25). */
  idempotencyKey?: string
  /** A command that an agent sends both by a tool and in its text, in one turn, runs once. */
  channel?: Channel
}

export type Channel = 'mcp' | 'text'

/** The sender of a command, once identity is settled (C3). */
export interface Speaker {
  /** An agent's registered name, or `operator`. */
  readonly name: string
  readonly principal: Principal
  /** The person who holds the token, for the audit; undefined if an agent speaks. */
  readonly person?: string
  /** A person speaks for an agent: the agent's rules apply, and the audit names the person. */
  readonly onBehalf: boolean
}

/** Given to a handler: one transaction, one speaker. */
export interface HandlerContext {
  readonly team: Team
  /** Audit entries of the operator carry the person's name. */
  readonly tx: Tx
  /** The same transaction without that, to carry out another speaker's command. */
  readonly unsigned: Tx
  readonly speaker: Speaker
  /** A person has approved exactly this command: `ask` counts as `allow`. */
  readonly approved: boolean
  /** For a command that was held: the speaker's task when it was sent, or null for none. */
  readonly saidIn?: string | null
  readonly channel?: Channel | undefined
  /** Takes or counts something in memory once per command, though its transaction may run again. */
  once<T>(what: string, compute: () => T): T
}

/** Properties of a command that the door checks before it carries it out. */
interface HandlerTraits {
  /** Doesn't count against the speaker's rate. */
  free?: boolean
  /** Changes nothing: an idempotency key has nothing to protect. */
  looksOnly?: boolean
  /** Agents may send it during a halt, because it sets nothing in motion. */
  whileHalted?: boolean
  /** Runs each time, even if an agent sends it both by a tool and in its text. */
  isEachTime?: boolean
  /** People of every role may send it, and the handler decides. Otherwise only operators may change something. */
  forEveryRole?: boolean
  /** An idempotency key has no effect: the receipt or the fields are secret, or nothing may delay the act. */
  ignoresKey?: boolean
}

/** Whether the speaker may do this. Pure: it looks at the team only. */
type DecideCommand<Fields> = (
  context: HandlerContext,
  fields: Fields,
  definition: CommandDefinition,
) => Decision | AppError

/** Changes the state, in the door's transaction. Returns refusals; a throw means a fault and rolls back. */
type HandleInTransaction<Fields> = (
  context: HandlerContext,
  fields: Fields,
  definition: CommandDefinition,
) => Promise<Receipt | AppError> | Receipt | AppError

/** A command on its way through the door, for a handler that also acts outside the store. */
export interface CommandCall {
  readonly team: Team
  readonly speaker: Speaker
  /**
   * Runs `work` in the door's transaction, and stores the receipt with the idempotency key. Returns the earlier receipt
   * instead if the key is known by then: `work` has not run. A thrown AppError rolls back and is a refusal.
   */
  commit(work: CommandWork): CommandAnswer
}

export type CommandWork = (context: HandlerContext) => Promise<Receipt | AppError> | Receipt | AppError

export type CommandAnswer = Promise<Receipt | AppError>

/**
 * `handle` is all in one transaction. `perform` also acts outside the store: it asks a model, interrupts an agent,
 * starts a run. It may throw refusals.
 */
export type Handler<Fields = Record<string, unknown>> = HandlerTraits &
  (
    | {
        handle: HandleInTransaction<Fields>
        /** Without it, everyone may send the command. */
        decide?: DecideCommand<Fields>
        perform?: never
      }
    | { perform(call: CommandCall, fields: Fields): CommandAnswer; handle?: never; decide?: never }
  )

/** All handlers by command type. */
export type Handlers = Readonly<Record<string, Handler>>

/** A command type and its handler. Rooms return theirs from `<room>Commands(…)`; applications may add some (S1.23). */
export interface CommandEntry {
  definition: CommandDefinition
  handler: Handler
}

/** Checks the handler's fields against those of the definition. */
export function commandEntry<const Definition extends CommandDefinition>(
  definition: Definition,
  handler: Handler<z.output<Definition['fields']>>,
): CommandEntry {
  return { definition, handler: handler as Handler }
}

/** Entries for commands that the protocol itself defines. */
export function builtInEntries(handlers: { [T in CommandType]?: Handler<FieldsOf<T>> }): CommandEntry[] {
  return Object.entries(handlers).map(([type, handler]) => ({
    definition: BUILT_IN_COMMANDS[type as CommandType],
    handler: handler as Handler,
  }))
}

/** A receipt with the details that the definition promises. */
export function receiptOf<const Definition extends CommandDefinition & { details: z.ZodObject }>(
  _definition: Definition,
  result: string,
  details: z.output<Definition['details']>,
): Receipt {
  return { status: 'ok', result, details }
}
