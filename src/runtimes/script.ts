import { z } from 'zod'
import type { SettingsProblem } from '../../model/settings.ts'

const Rule = z.strictObject({
  on: z
    .union([
      z.literal('start'),
      z.strictObject({ text: z.string().min(1) }),
      z.strictObject({ notice: z.string().min(1) }),
    ])
    .describe('When: at the start, when a turn comes in that holds this text, or a notice that does.'),
  say: z
    .string()
    .min(1)
    .describe('What it says then. {{from}}, {{title}}, {{content}} stand for the message heard.'),
  times: z.int().min(1).max(1_000_000).optional().describe('How often at most.'),
  after_ms: z.int().min(0).max(600_000).optional().describe('How long it thinks first.'),
})

/** An agent that plays a script: for demonstrations and tests, with no model and no network. */
export const ScriptSettings = z.strictObject({
  script: z.array(Rule).min(1).describe('The first rule that fits is played.'),
})
export type ScriptSettings = z.output<typeof ScriptSettings>
export type ScriptRule = z.output<typeof Rule>

export function checkScript(settings: unknown): SettingsProblem[] {
  const parsed = ScriptSettings.safeParse(settings)
  if (parsed.success) return []
  return parsed.error.issues.map((issue) => ({
    path: issue.path as (string | number)[],
    message: issue.message,
    hint: 'A script is a list of { on: start | { text: … }, say: … }.',
  }))
}
