import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { sharedSettings } from '../settings.ts'

export const CodexSettings = z.strictObject({
  ...sharedSettings('codex'),
  args: z
    .array(z.string())
    .default([])
    .describe('Additional arguments, such as --search, or -c with KEY=VALUE of its config.toml.'),
  model: z.string().min(1).optional().describe('Overrides the model in its config.toml.'),
  sandbox: z
    .enum(['read-only', 'workspace-write', 'danger-full-access'])
    .optional()
    .describe('What its commands may do without asking; overrides its config.toml.'),
  approval_policy: z
    .enum(['on-request', 'never'])
    .optional()
    .describe('When it asks a person for permission; overrides its config.toml.'),
  trust_folder: z
    .boolean()
    .default(false)
    .describe(
      "Trusts its working folder, including everything that the folder's settings may run, without asking in the pane.",
    ),
})
export type CodexSettings = z.output<typeof CodexSettings>

/** Arguments that would take the conversation out of our control. */
const OURS: Readonly<Record<string, string>> = {
  '--remote': 'Orchub always connects Codex to an app-server of its own to deliver messages.',
  '--cd': 'Set the working folder with `cwd:`.',
  '-C': 'Set the working folder with `cwd:`.',
}

export function checkSettings(settings: unknown): SettingsProblem[] {
  const parsed = CodexSettings.safeParse(settings ?? {})
  if (!parsed.success) {
    const hint = 'Codex accepts: command, args, env, model, sandbox, approval_policy, trust_folder.'
    return problemsIn(parsed.error, hint)
  }
  return parsed.data.args.flatMap((argument, index) => {
    const hint = OURS[argument.split('=')[0]!]
    return hint === undefined ? [] : [{ path: ['args', index], message: 'Orchub sets this', hint }]
  })
}
