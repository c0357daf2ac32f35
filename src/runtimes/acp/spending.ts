import { z } from 'zod'
import type { Usage } from '../runtime.ts'

const count = z.number().nonnegative().nullish()
const PromptUsage = z.object({
  usage: z
    .object({ inputTokens: count, outputTokens: count, cachedReadTokens: count, cachedWriteTokens: count })
    .nullish()
    .catch(undefined),
  // Gemini's own place for the same.
  _meta: z
    .object({ quota: z.object({ token_count: z.object({ input_tokens: count, output_tokens: count }) }) })
    .nullish()
    .catch(undefined),
})

/** What a turn cost, from the answer to session/prompt, where the agent says it (C26). */
export function spentBy(response: unknown, key: string): Usage | undefined {
  const parsed = PromptUsage.safeParse(response)
  if (!parsed.success) return undefined
  const { usage, _meta } = parsed.data
  const other = _meta?.quota.token_count
  if (usage == null && other == null) return undefined
  return {
    spent: {
      key,
      input: usage?.inputTokens ?? other?.input_tokens ?? 0,
      output: usage?.outputTokens ?? other?.output_tokens ?? 0,
      cacheRead: usage?.cachedReadTokens ?? 0,
      cacheWrite: usage?.cachedWriteTokens ?? 0,
    },
  }
}
