import type { z } from 'zod'

/** Providers and protocols of models. */
export const PROVIDERS = ['anthropic', 'openai', 'google', 'openai-compatible'] as const
export type Provider = (typeof PROVIDERS)[number]

/** An entry of `models:` in orc.yaml. Never holds the key itself, only the name of its variable. */
export interface ModelSettings {
  readonly provider: Provider
  /** The provider's name for the model. */
  readonly model: string
  readonly baseUrl?: string
  /** The environment variable that holds the key; undefined if no key is sent. */
  readonly keyEnv?: string
  /** Limit for a whole answer, or for the silence between two chunks of a streamed one. */
  readonly timeoutMs: number
  readonly retries: number
  readonly maxOutputTokens?: number
  readonly temperature?: number
  /** In tokens, if known. */
  readonly contextWindow?: number
}

/** The port for calls to language models. Failures are values. */
export interface Models {
  /** The settings of a model, without calling it. */
  about(name: string): Pick<ModelSettings, 'model' | 'contextWindow'> | undefined
  /** Generates a value that matches a schema. After an invalid answer, the model gets one more try with the problem. */
  generateObject<Schema extends z.ZodType>(
    call: ObjectCall<Schema>,
  ): Promise<Generated<z.output<Schema>> | ModelFailure>
  /** Runs one step of a conversation: streams text, then returns the tool calls. */
  stream(call: StreamCall): Promise<Streamed | ModelFailure>
}

interface ModelCall {
  /** A name from `models:` in orc.yaml. */
  readonly model: string
  readonly signal?: AbortSignal
  /** Called for every request that cost something, including failed ones. */
  spent?(spending: Spending): void
}

export interface ObjectCall<Schema extends z.ZodType = z.ZodType> extends ModelCall {
  readonly schema: Schema
  readonly system?: string
  /** Enclose text of other people and agents in fences (`fence`). */
  readonly prompt: string
  /** Purpose of the call, for the log, such as `judge`. */
  readonly purpose: string
}

/** Options that callers pass through to a call. */
export type ModelCallOptions = Pick<ModelCall, 'signal' | 'spent'>

export interface StreamCall extends ModelCall {
  readonly system: string
  readonly messages: readonly ChatMessage[]
  readonly tools: readonly ToolDefinition[]
  readonly temperature?: number
  /** The model has started to answer or to reason. */
  onBegin?(): void
  onText?(piece: string): void
}

export interface ToolDefinition {
  readonly name: string
  readonly description: string
  /** The parameters as JSON Schema. */
  readonly schema: Readonly<Record<string, unknown>>
}

/** Plain JSON, so a conversation can be stored. */
export type ChatMessage =
  | { readonly role: 'user'; readonly text: string }
  | {
      readonly role: 'assistant'
      readonly text: string
      readonly calls: readonly ToolCall[]
      /** Provider data to send back with the message, such as signatures. Only the adapter reads it. */
      readonly parts?: unknown
    }
  | { readonly role: 'tool'; readonly results: readonly ToolResult[] }

export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
  /** Why the call can't run, if the model wrote an invalid one. */
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
}

export interface Streamed {
  readonly ok: true
  readonly text: string
  readonly calls: readonly ToolCall[]
  readonly parts?: unknown
  /** `length`: the answer was cut off. */
  readonly finish: 'stop' | 'length'
}

/** In tokens. `input` excludes tokens read from or written to a cache. */
export interface Spending {
  /** The provider's name for the model, which prices refer to. */
  readonly model: string
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

export type FailureCode =
  /** Down, overloaded or rate limited: the same call may work later. */
  | 'unavailable'
  /** The model or its provider will never answer this. */
  | 'refused'
  /** The answer doesn't match the schema. */
  | 'garbage'
  | 'timeout'
  /** The key is missing or rejected. */
  | 'no_key'
  /** The model is in neither orc.yaml nor the provider's list. */
  | 'unknown_model'
  /** The input exceeds the model's context window. */
  | 'too_long'
  /** The caller aborted the call. */
  | 'aborted'

export interface ModelFailure {
  readonly ok: false
  readonly code: FailureCode
  readonly message: string
  readonly hint: string
  /** The pause that the provider asks for. */
  readonly retryAfterMs?: number
}
