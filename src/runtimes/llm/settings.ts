import { z } from 'zod'
import type { SettingsProblem } from '../../base/settings-problem.ts'
import type { AgentSettings } from '../runtime.ts'

export const LlmSettings = z.strictObject({
  model: z.string().min(1).max(64).describe('A model from "models" in orc.yaml.'),
  max_steps: z
    .int()
    .min(1)
    .max(1000)
    .default(20)
    .describe('Maximum model calls per turn: one, plus one after each use of tools.'),
  temperature: z.number().min(0).max(2).optional().describe("Overrides the model's own setting."),
  history_tokens: z
    .int()
    .min(500)
    .max(100_000_000)
    .optional()
    .describe(
      "How much of the conversation to send, in estimated tokens. Older turns are omitted. Default: 60 % of the model's context_window, or 60000.",
    ),
})
export type LlmSettings = z.output<typeof LlmSettings>

export function checkSettings({ settings }: AgentSettings): SettingsProblem[] {
  const parsed = LlmSettings.safeParse(settings ?? {})
  if (parsed.success) return []
  return parsed.error.issues.map((issue) => ({
    path: issue.path as (string | number)[],
    message: issue.message,
    hint: 'The runtime llm accepts: model (required), max_steps, temperature, history_tokens.',
  }))
}

const UNKNOWN_WINDOW_HISTORY = 60_000
/** The rest is reserved for the prompt, the tools, the response and the estimate's error. */
const SHARE = 0.6

export function historyBudget(settings: LlmSettings, contextWindow: number | undefined): number {
  if (settings.history_tokens !== undefined) return settings.history_tokens
  return contextWindow === undefined ? UNKNOWN_WINDOW_HISTORY : Math.floor(contextWindow * SHARE)
}
