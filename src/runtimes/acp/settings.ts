import { z } from 'zod'
import { problemsIn, type SettingsProblem } from '../../base/settings-problem.ts'
import { MENTIONS } from '../../protocol/mentions.ts'
import type { AgentSettings } from '../runtime.ts'
import { isBuiltIn, PROGRAMS } from './programs.ts'

export const AcpSettings = z.strictObject({
  command: z
    .string()
    .min(1)
    .optional()
    .describe('Path or name of the executable that speaks ACP, instead of the usual one.'),
  args: z
    .array(z.string())
    .optional()
    .describe("Arguments: beside the built-in program's own ones, or all of them with program: any."),
  env: z.record(z.string(), z.string()).optional().describe('Further variables in its environment.'),
  model: z.string().min(1).optional().describe('The model, by the id under which the agent offers it.'),
  mode: z
    .string()
    .min(1)
    .optional()
    .describe('The session mode, such as plan or yolo, by the id under which the agent offers it.'),
  mentions: z
    .enum(MENTIONS)
    .optional()
    .describe('Where it takes @name in a message for a file to read: `alone`, or `anywhere`.'),
})
export type AcpSettings = z.output<typeof AcpSettings>

export function checkSettings({ program, settings }: AgentSettings): SettingsProblem[] {
  const name = program ?? 'any'
  if (name !== 'any' && !isBuiltIn(name)) {
    return [
      {
        path: [],
        message: `The runtime acp knows no program ${name}`,
        hint: `Take one of ${Object.keys(PROGRAMS).join(', ')}, or program: any with a command.`,
      },
    ]
  }
  const parsed = AcpSettings.safeParse(settings ?? {})
  if (!parsed.success) {
    const hint =
      'An agent of the runtime acp takes { command, args, env, model, mode, mentions }, all optional.'
    return problemsIn(parsed.error, hint)
  }
  if (name === 'any' && parsed.data.command === undefined) {
    return [
      {
        path: ['command'],
        message: 'With program: any, the command that speaks ACP must be named',
        hint: 'For example command: my-agent, args: [--acp].',
      },
    ]
  }
  return []
}
