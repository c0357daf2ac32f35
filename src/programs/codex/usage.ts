import type { Usage } from '../../runtimes/runtime.ts'
import type { Notices } from './records.ts'

/** C26: what went into the last answer, over the model's window. Codex counts cached tokens as input, too. */
export function usageOf(
  { threadId, tokenUsage }: Notices['thread/tokenUsage/updated'],
  model: string | undefined,
): Usage {
  const { total, last, modelContextWindow } = tokenUsage
  return {
    ...(model === undefined ? {} : { model }),
    contextTokens: last.inputTokens,
    ...(modelContextWindow ? { contextWindow: modelContextWindow } : {}),
    spent: {
      // The same figures are sent again with a resume; the sum only grows with an answer.
      key: `codex:${threadId}:${total.totalTokens}`,
      input: Math.max(0, last.inputTokens - last.cachedInputTokens - last.cacheWriteInputTokens),
      output: last.outputTokens,
      cacheRead: last.cachedInputTokens,
      cacheWrite: last.cacheWriteInputTokens,
    },
  }
}
