import type { Usage } from '../../runtimes/runtime.ts'
import type { CodexNotifications } from './records.ts'

/**
 * C26: tokens of the last answer relative to the model's window. Codex counts cached tokens as input, too.
 */
export function usageOf(
  { threadId, tokenUsage }: CodexNotifications['thread/tokenUsage/updated'],
  model: string | undefined,
): Usage {
  const { total, last, modelContextWindow } = tokenUsage
  return {
    ...(model === undefined ? {} : { model }),
    contextTokens: last.inputTokens,
    ...(modelContextWindow ? { contextWindow: modelContextWindow } : {}),
    spent: {
      // A resume sends the same figures again; the sum grows only with an answer.
      key: `codex:${threadId}:${total.totalTokens}`,
      input: Math.max(0, last.inputTokens - last.cachedInputTokens - last.cacheWriteInputTokens),
      output: last.outputTokens,
      cacheRead: last.cachedInputTokens,
      cacheWrite: last.cacheWriteInputTokens,
    },
  }
}
