/** The interface between the door (handle.ts) and the rooms that handle commands. */
import type { Principal } from '../base/agent.ts'
import type { AppError } from '../base/errors.ts'
import type { CommandDefinition, CommandType, FieldsOf, SaidCommand } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Decision } from '../rules/rule.ts'
import type { Tx } from '../store/store.ts'
import type { Team } from './team.ts'

/** The one door: HTTP, shell, text, files and people all end here. */
export type Handle = (principal: Principal, said: SaidCommand, origin?: CommandOrigin) => Promise<Receipt>

/** How a command came, apart from who sent it. */
export interface CommandOrigin {
  /** The same key from the same speaker acts once (C25). */
  idempotencyKey?: string
  /** An agent that sends the same command by a tool and in its text, in one turn, means it once. */
  channel?: Channel
}

export type Channel = 'mcp' | 'text'

/** The sender of a command, once identity is settled (C3). */
export interface Speaker {
  /** An agent's registered name, or `operator`. */
  readonly name: string
  readonly principal: Principal
  /** The person behind the token, where a person speaks: for the audit. */
  readonly person?: string
  /** A person speaks for an agent: the agent's rules apply, and the audit names the person. */
  readonly onBehalf: boolean
}

/** Given to a handler: one transaction, one speaker. */
export interface HandlerContext {
  readonly team: Team
  readonly tx: Tx
  readonly speaker: Speaker
  /** A person has approved exactly this command: `ask` counts as `allow`. */
  readonly approved: boolean
  /** For a command that was held: the speaker's task when it was sent, or null for none. */
  readonly saidIn?: string | null
  readonly channel?: Channel | undefined
  /** Takes or counts something in memory once per command, though its transaction may run again. */
  once<T>(what: string, compute: () => T): T
}

/** Refusals are returned, not thrown: a throw means a fault and rolls back. */
export interface Handler<Fields = Record<string, unknown>> {
  /** Doesn't count against the speaker's rate. */
  free?: boolean
  /** Changes nothing: an idempotency key has nothing to protect. */
  looksOnly?: boolean
  /** Agents may send it during a halt, because it sets nothing in motion. */
  whileHalted?: boolean
  /** Sent by a tool and in the text, it is meant twice. */
  isEachTime?: boolean
  /** Runs before the transaction, for what takes long, such as asking a model. Returns a refusal or nothing. */
  before?(fields: Fields, speaker: Speaker): Promise<AppError | undefined>
  /** Whether the speaker may do this. Pure: it looks at the team only. Without it, everyone may. */
  decide?(context: HandlerContext, fields: Fields, definition: CommandDefinition): Decision | AppError
  handle(
    context: HandlerContext,
    fields: Fields,
    definition: CommandDefinition,
  ): Promise<Receipt | AppError> | Receipt | AppError
}

/** A handler for each built-in command: the compiler finds a missing one. */
export type BuiltInHandlers = { [T in CommandType]: Handler<FieldsOf<T>> }

export type HandlersOf<T extends CommandType> = Pick<BuiltInHandlers, T>

/** Looked up by type at run time, together with those that an application adds. */
export type Handlers = Readonly<Record<string, Handler>>

/** A command type that an embedding application adds (S1.23). */
export interface AddedCommand {
  definition: CommandDefinition
  handler: Handler
}
