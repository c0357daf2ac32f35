import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { sharedSettings } from '../settings.ts'

/** Settings that Orchub sets itself, and a team must not override. */
const OURS: Readonly<Record<string, string>> = {
  OPENCODE_CONFIG_CONTENT: 'Put it into a file and name that with OPENCODE_CONFIG; both are merged.',
  OPENCODE_SERVER_PASSWORD: 'A new one is made for every start.',
  OPENCODE_SERVER_USERNAME: 'A new login is made for every start.',
}

export const OpencodeSettings = z.strictObject({
  ...sharedSettings('opencode'),
  model: z
    .string()
    .regex(/^[^/\s]+\/\S+$/, 'is a provider and a model, such as anthropic/claude-sonnet-5')
    .optional()
    .describe('PROVIDER/MODEL, instead of the one in its own settings.'),
  agent: z
    .string()
    .min(1)
    .optional()
    .describe('Which of its own agents (`opencode agent list`) it works as.'),
})
export type OpencodeSettings = z.output<typeof OpencodeSettings>

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = OpencodeSettings.safeParse(settings ?? {})
  if (!parsed.success) return problemsIn(parsed.error, 'opencode takes command, args, env, model and agent.')
  return Object.entries(OURS)
    .filter(([name]) => name in parsed.data.env)
    .map(([name, hint]) => ({ path: ['env', name], message: 'is set by Orchub', hint }))
}
