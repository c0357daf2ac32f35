import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { sharedSettings } from '../settings.ts'

/** Settings that Orchub sets itself, and a team must not override. */
const OURS: Readonly<Record<string, string>> = {
  OPENCODE_CONFIG_CONTENT: 'Put it in a file and set OPENCODE_CONFIG to that; opencode merges both.',
  OPENCODE_SERVER_PASSWORD: 'Orchub chooses a new one for every start.',
  OPENCODE_SERVER_USERNAME: 'Orchub creates a new login for every start.',
}

export const OpencodeSettings = z.strictObject({
  ...sharedSettings('opencode'),
  model: z
    .string()
    .regex(/^[^/\s]+\/\S+$/, 'must be PROVIDER/MODEL, such as anthropic/claude-sonnet-5')
    .optional()
    .describe('PROVIDER/MODEL; overrides the model in its own settings.'),
  agent: z
    .string()
    .min(1)
    .optional()
    .describe("Which of opencode's own agents (`opencode agent list`) to use."),
})
export type OpencodeSettings = z.output<typeof OpencodeSettings>

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = OpencodeSettings.safeParse(settings ?? {})
  if (!parsed.success) return problemsIn(parsed.error, 'opencode accepts: command, args, env, model, agent.')
  return Object.entries(OURS)
    .filter(([name]) => name in parsed.data.env)
    .map(([name, hint]) => ({ path: ['env', name], message: 'Orchub sets this', hint }))
}
