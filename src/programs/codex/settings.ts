import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { sharedSettings } from '../settings.ts'

export const CodexSettings = z.strictObject({
  ...sharedSettings('codex'),
  args: z
    .array(z.string())
    .default([])
    .describe('More arguments for it, such as --search, or -c and KEY=VALUE of its config.toml.'),
  model: z.string().min(1).optional().describe('Instead of the one in its own config.toml.'),
  sandbox: z
    .enum(['read-only', 'workspace-write', 'danger-full-access'])
    .optional()
    .describe('What its commands may do without asking, instead of what its own config.toml says.'),
  approval_policy: z
    .enum(['on-request', 'never'])
    .optional()
    .describe('Whether it asks a person for leave, instead of what its own config.toml says.'),
  trust_folder: z
    .boolean()
    .default(false)
    .describe(
      'Trusts the folder it works in, with all that its settings may run, without asking in its pane.',
    ),
})
export type CodexSettings = z.output<typeof CodexSettings>

/** Arguments that would take the conversation out of our control. */
const OURS: Readonly<Record<string, string>> = {
  '--remote': 'Codex is always connected to an app-server of its own, through which messages reach it.',
  '--cd': 'Say where the agent works with `cwd:`.',
  '-C': 'Say where the agent works with `cwd:`.',
}

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = CodexSettings.safeParse(settings ?? {})
  if (!parsed.success) {
    const hint = 'Codex takes command, args, env, model, sandbox, approval_policy and trust_folder.'
    return problemsIn(parsed.error, hint)
  }
  return parsed.data.args.flatMap((argument, index) => {
    const hint = OURS[argument.split('=')[0]!]
    return hint === undefined ? [] : [{ path: ['args', index], message: 'is set by Orchub', hint }]
  })
}
