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
    .describe('Path or name of the executable that speaks ACP; overrides the default.'),
  args: z
    .array(z.string())
    .optional()
    .describe('Additional arguments of a built-in program, or all arguments with program: any.'),
  env: z.record(z.string(), z.string()).optional().describe('Additional environment variables.'),
  model: z.string().min(1).optional().describe('The model, by the id that the agent offers.'),
  mode: z
    .string()
    .min(1)
    .optional()
    .describe('The session mode, such as plan or yolo, by the id that the agent offers.'),
  mentions: z
    .enum(MENTIONS)
    .optional()
    .describe('Where it treats @name in a message as a file to read: `alone`, or `anywhere`.'),
})
export type AcpSettings = z.output<typeof AcpSettings>

export function checkSettings({ program, settings }: AgentSettings): SettingsProblem[] {
  const name = program ?? 'any'
  if (name !== 'any' && !isBuiltIn(name)) {
    return [
      {
        path: [],
        message: `Unknown program for the runtime acp: ${name}`,
        hint: `Use one of ${Object.keys(PROGRAMS).join(', ')}, or program: any with a command.`,
      },
    ]
  }
  const parsed = AcpSettings.safeParse(settings ?? {})
  if (!parsed.success) {
    const hint = 'The runtime acp accepts: command, args, env, model, mode, mentions (all optional).'
    return problemsIn(parsed.error, hint)
  }
  if (name === 'any' && parsed.data.command === undefined) {
    return [
      {
        path: ['command'],
        message: 'program: any needs a command that speaks ACP',
        hint: 'Example: { command: my-agent, args: [--acp] }',
      },
    ]
  }
  return []
}
