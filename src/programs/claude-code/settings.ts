import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { sharedSettings } from '../settings.ts'

const PERMISSION_MODES = ['default', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions'] as const

/** Flags that Orchub sets itself: given twice, the last one would win and cut the agent off. */
const OURS = [
  '--settings',
  '--session-id',
  '--resume',
  '-r',
  '--continue',
  '-c',
  '--fork-session',
  '--append-system-prompt-file',
  '--permission-mode',
  '--print',
  '-p',
  '--bare',
  '--safe-mode',
]

export const ClaudeCodeSettings = z.strictObject({
  ...sharedSettings('claude'),
  model: z.string().min(1).optional().describe('The model, such as opus or claude-sonnet-5.'),
  permission_mode: z
    .enum(PERMISSION_MODES)
    .default('default')
    .describe('What it may do without asking; its permission requests go to people.'),
})
export type ClaudeCodeSettings = z.output<typeof ClaudeCodeSettings>

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = ClaudeCodeSettings.safeParse(settings ?? {})
  if (!parsed.success)
    return problemsIn(parsed.error, 'claude-code accepts: command, args, env, model, permission_mode.')
  return parsed.data.args.flatMap((arg, index) =>
    OURS.includes(arg.split('=', 1)[0]!)
      ? [{ path: ['args', index], message: `Orchub sets ${arg}`, hint: 'Remove it.' }]
      : [],
  )
}
