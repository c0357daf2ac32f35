import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { sharedSettings } from '../settings.ts'

export const GeminiSettings = z.strictObject({
  ...sharedSettings('gemini'),
  model: z.string().min(1).optional().describe('Overrides the model in its own settings.'),
})
export type GeminiSettings = z.output<typeof GeminiSettings>

/** Only the extensions named there are loaded, including ours. */
const NAMES_EXTENSIONS = /^(?:-e|--extensions)(?:=|$)/

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = GeminiSettings.safeParse(settings ?? {})
  if (!parsed.success) return problemsIn(parsed.error, 'Gemini accepts: command, args, env, model.')
  return parsed.data.args.flatMap((argument, index) =>
    NAMES_EXTENSIONS.test(argument)
      ? [
          {
            path: ['args', index],
            message: 'would disable the extension that Orchub needs',
            hint: 'Disable single extensions with `gemini extensions disable NAME` instead.',
          },
        ]
      : [],
  )
}
