/** The companies and protocols a model can be reached by. */
export const PROVIDERS = ['anthropic', 'openai', 'google', 'openai-compatible'] as const
export type Provider = (typeof PROVIDERS)[number]

/** One entry of `models:` in orc.yaml. The key itself is never in it: only the name of its variable. */
export interface ModelSettings {
  readonly provider: Provider
  /** By the provider's name for it. */
  readonly model: string
  readonly baseUrl?: string
  /** The environment variable that holds the key; undefined where none is sent. */
  readonly keyEnv?: string
  /** For a whole answer; of a streamed one, for the silence between two pieces. */
  readonly timeoutMs: number
  readonly retries: number
  readonly maxOutputTokens?: number
  readonly temperature?: number
  /** How much the model can take in, in tokens, where it is known. */
  readonly contextWindow?: number
}
