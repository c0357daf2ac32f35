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
