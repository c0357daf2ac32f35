import type { LanguageModelUsage } from 'ai'
import type { ModelFailure, Spending } from '../llm.ts'
import type { ModelSettings } from '../model-settings.ts'
import type { Attempt } from './attempts.ts'
import type { Opened } from './provider.ts'

/** An open way to one model, for one call. */
export interface Line {
  readonly settings: ModelSettings
  /** What every request has in common. */
  readonly common: {
    readonly model: Opened['model']
    readonly providerOptions: Opened['options']
    /** Retries are ours: they go by our clock. */
    readonly maxRetries: 0
    readonly temperature?: number
    readonly maxOutputTokens?: number
  }
  attempt<T>(once: (attempt: Attempt) => Promise<T>): Promise<T | ModelFailure>
  /** Tells the caller what a request cost. */
  spent(usage: LanguageModelUsage): Spending
}

export function spendingOf(model: string, usage: LanguageModelUsage): Spending {
  const {
    cacheReadTokens: cacheRead = 0,
    cacheWriteTokens: cacheWrite = 0,
    noCacheTokens,
  } = usage.inputTokenDetails
  const input = noCacheTokens ?? Math.max(0, (usage.inputTokens ?? 0) - cacheRead - cacheWrite)
  return { model, input, output: usage.outputTokens ?? 0, cacheRead, cacheWrite }
}

export function addSpending(before: Spending | undefined, more: Spending): Spending {
  if (before === undefined) return more
  return {
    model: more.model,
    input: before.input + more.input,
    output: before.output + more.output,
    cacheRead: before.cacheRead + more.cacheRead,
    cacheWrite: before.cacheWrite + more.cacheWrite,
  }
}
