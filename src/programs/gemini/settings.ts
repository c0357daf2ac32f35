import { z } from 'zod'
import type { SettingsProblem } from '../../model/settings.ts'

export const GeminiSettings = z.strictObject({
  command: z.string().min(1).default('gemini').describe('The executable: a name on PATH, or a path.'),
  args: z.array(z.string()).default([]).describe('More arguments for it.'),
  env: z.record(z.string(), z.string()).default({}).describe('More environment variables for it.'),
  model: z.string().min(1).optional().describe('The model, instead of the one in its own settings.'),
})
export type GeminiSettings = z.output<typeof GeminiSettings>

/** Only the extensions named there are loaded, and ours is one. */
const NAMES_EXTENSIONS = /^(?:-e|--extensions)(?:=|$)/

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = GeminiSettings.safeParse(settings ?? {})
  if (!parsed.success) {
    return parsed.error.issues.map((issue) => ({
      path: issue.path as (string | number)[],
      message: issue.message,
      hint: 'Gemini takes command, args, env and model.',
    }))
  }
  return parsed.data.args.flatMap((argument, index) =>
    NAMES_EXTENSIONS.test(argument)
      ? [
          {
            path: ['args', index],
            message: 'would leave out the extension that Orchub works by',
            hint: 'Disable single extensions with `gemini extensions disable NAME` instead.',
          },
        ]
      : [],
  )
}
