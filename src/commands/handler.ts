import type { AppError } from '../base/errors.ts'
import type { CommandDefinition, CommandType, FieldsOf } from '../protocol/command.ts'
import type { Receipt } from '../protocol/receipt.ts'
import type { Decision } from '../rules/rule.ts'
import type { EngineParts, HandlerContext, Speaker } from './context.ts'

/** What one command does. Refusals are returned, not thrown: a throw means a fault and rolls back. */
export interface Handler<Fields = Record<string, unknown>> {
  /** Not counted against the speaker's rate. */
  free?: boolean
  /** Changes nothing, so that an idempotency key has nothing to protect. */
  looksOnly?: boolean
  /** Carried out for agents even while everything is halted: it sets nothing in motion. */
  whileHalted?: boolean
  /** Said by a tool and in the text, it is meant twice. */
  isEachTime?: boolean
  /** What must be known before the transaction, such as what a model says. Refuses, or lets it go on. */
  before?(parts: EngineParts, fields: Fields, speaker: Speaker): Promise<AppError | undefined>
  /** May the speaker do this? Pure: looks at the team only. Absent: everyone may. */
  decide?(context: HandlerContext, fields: Fields, definition: CommandDefinition): Decision | AppError
  handle(
    context: HandlerContext,
    fields: Fields,
    definition: CommandDefinition,
  ): Promise<Receipt | AppError> | Receipt | AppError
}

/** One entry for every built-in command: the compiler finds a missing one. */
export type BuiltInHandlers = { [T in CommandType]: Handler<FieldsOf<T>> }

/** Looked up by type at run time, with those an application added. */
export type Handlers = Readonly<Record<string, Handler>>

/** A command type that an embedding application adds (S1.23). */
export interface AddedCommand {
  definition: CommandDefinition
  handler: Handler
}
