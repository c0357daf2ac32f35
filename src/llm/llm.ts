import type { z } from 'zod'
import type { ModelSettings } from './model-settings.ts'

/** The one port for calls to language models. What can go wrong comes back as a value. */
export interface Models {
  /** What is known of a model without calling it. */
  about(name: string): Pick<ModelSettings, 'model' | 'contextWindow'> | undefined
  /** An answer that fits a schema. Garbage is answered once with what is wrong with it, then it is a failure. */
  generateObject<Schema extends z.ZodType>(
    call: ObjectCall<Schema>,
  ): Promise<Generated<z.output<Schema>> | ModelFailure>
  /** One step of a conversation: text as it comes, then the tools that the model wants to use. */
  stream(call: StreamCall): Promise<Streamed | ModelFailure>
}

interface Call {
  /** A name from `models:` in orc.yaml. */
  readonly model: string
  readonly signal?: AbortSignal
  /** Hears of every request that cost something, failed ones too. */
  spent?(spending: Spending): void
}

export interface ObjectCall<Schema extends z.ZodType = z.ZodType> extends Call {
  readonly schema: Schema
  readonly system?: string
  /** Other people's and agents' words in it stand in fences (`fence`). */
  readonly prompt: string
  /** For the log and the record: what the answer is for, such as `judge`. */
  readonly purpose: string
}

/** Options that callers pass through to a call. */
export type ModelCallOptions = Pick<Call, 'signal' | 'spent'>

export interface StreamCall extends Call {
  readonly system: string
  readonly messages: readonly ChatMessage[]
  readonly tools: readonly ToolDefinition[]
  readonly temperature?: number
  /** The model began to answer, if only by thinking. */
  onBegin?(): void
  onText?(piece: string): void
}

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** The parameters as JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>
}

/** JSON all through, so that a conversation can be kept. */
export type ChatMessage =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant'
      readonly text: string
      readonly calls: readonly ToolCall[]
      /** What the provider wants back with the message, such as signatures. Only its adapter reads it. */
      readonly parts?: unknown
    }
  | { readonly role: 'tool'; readonly results: readonly ToolResult[] }

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  /** Why it cannot be carried out: what the model wrote is no such call. */
  readonly invalid?: string | undefined
}

export interface ToolResult {
  readonly id: string
  readonly name: string
  readonly text: string
  readonly isError: boolean
}

export interface Generated<Value> {
  readonly ok: true
  readonly value: Value
  readonly spending: Spending
}

export interface Streamed {
  readonly ok: true
  readonly text: string
  readonly calls: readonly ToolCall[]
  readonly parts?: unknown
  /** `length`: it was cut off. */
  readonly finish: 'stop' | 'length'
  readonly spending: Spending
}

/** In tokens. `input` is what was neither read from a cache nor written to one. */
export interface Spending {
  /** The provider's name of the model, by which prices go. */
  readonly model: string
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

export type FailureCode =
  /** Away, overloaded, over a rate: the same call may work later. */
  | 'unavailable'
  /** The model or its provider will not answer this, now or later. */
  | 'refused'
  /** The answer does not fit what was asked for. */
  | 'garbage'
  | 'timeout'
  /** No key, or one that the provider does not accept. */
  | 'no_key'
  /** orc.yaml names no such model, or the provider has none. */
  | 'unknown_model'
  /** More than the model can take in. */
  | 'too_long'
  /** The caller no longer wants it. */
  | 'aborted'

export interface ModelFailure {
  readonly ok: false
  readonly code: FailureCode
  readonly message: string
  readonly hint: string
  /** How long the provider asks to be left alone. */
  readonly retryAfterMs?: number
}
