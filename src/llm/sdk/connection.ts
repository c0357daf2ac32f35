import type { LanguageModel, LanguageModelUsage } from 'ai'
import type { Clock } from '../../base/clock.ts'
import type { ModelFailure, ModelSettings, Provider, Spending } from '../llm.ts'
import { type Attempt, attempt, classifyError } from './failure.ts'

// The library would print warnings to standard error, which is the service's log.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

export type ModelConnection = Awaited<ReturnType<typeof openModelConnection>>

/** A connection to a model for one call, so that neither the key nor anything else stays in memory. */
export async function openModelConnection(
  settings: ModelSettings,
  key: string | undefined,
  clock: Clock,
  call: { signal?: AbortSignal; spent?(spending: Spending): void },
) {
  const { model, options } = await OPEN[settings.provider](settings, key)
  const { temperature, maxOutputTokens } = settings
  const explain = (error: unknown) => classifyError(error, settings, clock.now())
  return {
    settings,
    /** Options of every request. */
    common: {
      model,
      providerOptions: options,
      // Retries happen in `attempt`, on the injected clock.
      maxRetries: 0,
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    },
    attempt: <T>(once: (attempt: Attempt) => Promise<T>): Promise<T | ModelFailure> =>
      attempt({ settings, clock, signal: call.signal, explain }, once),
    /** Reports the cost of a request to the caller. */
    spent: (usage: LanguageModelUsage) => call.spent?.(spendingOf(settings.model, usage)),
  }
}

interface OpenedModel {
  readonly model: LanguageModel
  readonly options: Record<string, Record<string, string | boolean | Record<string, string>>>
}

/** Loads each provider's library at its first call. */
const OPEN: Record<Provider, (settings: ModelSettings, key: string | undefined) => Promise<OpenedModel>> = {
  async anthropic({ model, baseUrl }, key) {
    const { createAnthropic } = await import('@ai-sdk/anthropic')
    const provider = createAnthropic({ ...keyed(key), ...at(baseUrl) })
    // Each step resends the conversation, so let the provider cache all but its end. Compatible services may not support
    // the option.
    const caching = baseUrl === undefined ? { cacheControl: { type: 'ephemeral' } } : {}
    return { model: provider(model), options: { anthropic: caching } }
  },
  async openai({ model, baseUrl }, key) {
    const { createOpenAI } = await import('@ai-sdk/openai')
    const provider = createOpenAI({ ...keyed(key), ...at(baseUrl) })
    // The conversation is stored locally, not at the provider. Answers are validated here, because strict mode supports
    // only a part of JSON Schema.
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

const keyed = (apiKey: string | undefined) => (apiKey === undefined ? {} : { apiKey })
const at = (baseURL: string | undefined) => (baseURL === undefined ? {} : { baseURL })

function spendingOf(model: string, usage: LanguageModelUsage): Spending {
  const {
    cacheReadTokens: cacheRead = 0,
    cacheWriteTokens: cacheWrite = 0,
    noCacheTokens,
  } = usage.inputTokenDetails
  const input = noCacheTokens ?? Math.max(0, (usage.inputTokens ?? 0) - cacheRead - cacheWrite)
  return { model, input, output: usage.outputTokens ?? 0, cacheRead, cacheWrite }
}
