import type { LanguageModel } from 'ai'
import type { ModelSettings, Provider } from '../model-settings.ts'

export interface Opened {
  readonly model: LanguageModel
  readonly options: Record<string, Record<string, string | boolean | Record<string, string>>>
}

/** Each provider's library is loaded with the first call that needs it. */
const OPEN: Record<Provider, (settings: ModelSettings, key: string | undefined) => Promise<Opened>> = {
  async anthropic({ model, baseUrl }, key) {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    const provider = createAnthropic({ ...keyed(key), ...at(baseUrl) })
    // A conversation is sent again with every step: all but its end is then read from the cache. Other services that
    // speak the same protocol may not know the word.
    const caching = baseUrl === undefined ? { cacheControl: { type: 'ephemeral' } } : {}
    return { model: provider(model), options: { anthropic: caching } }
  },
  async openai({ model, baseUrl }, key) {
    const { createOpenAI } = await import('@ai-sdk/openai')
    const provider = createOpenAI({ ...keyed(key), ...at(baseUrl) })
    // Our file is the conversation: nothing is kept at the provider. Answers are checked against the schema here, and
    // its strict mode takes only a part of JSON Schema.
    return { model: provider(model), options: { openai: { store: false, strictJsonSchema: false } } }
  },
  async google({ model, baseUrl }, key) {
    const { createGoogle } = await import('@ai-sdk/google')
    return { model: createGoogle({ ...keyed(key), ...at(baseUrl) })(model), options: {} }
  },
  async 'openai-compatible'({ model, baseUrl }, key) {
    const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
    const provider = createOpenAICompatible({
      name: 'compatible',
      baseURL: baseUrl ?? '',
      includeUsage: true,
      supportsStructuredOutputs: true,
      ...keyed(key),
    })
    return { model: provider(model), options: { compatible: { strictJsonSchema: false } } }
  },
}

export function openModel(settings: ModelSettings, key: string | undefined): Promise<Opened> {
  return OPEN[settings.provider](settings, key)
}

const keyed = (apiKey: string | undefined) => (apiKey === undefined ? {} : { apiKey })
const at = (baseURL: string | undefined) => (baseURL === undefined ? {} : { baseURL })
