import { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { problemsIn, type SettingsProblem } from '../base/settings-problem.ts'
import { findExecutable } from './executable.ts'
import type { ProgramLaunchOptions } from './program.ts'

/** Settings under `with:` that all programs share. */
export const sharedSettings = (command: string) => ({
  command: z.string().min(1).default(command).describe('The executable: a name on PATH, or a path.'),
  args: z.array(z.string()).default([]).describe('Additional arguments.'),
  env: z.record(z.string(), z.string()).default({}).describe('Additional environment variables.'),
})

/** Checks the settings under `with:`. `more` finds problems in settings that fit the schema. */
export function settingsProblems<Schema extends z.ZodObject>(
  program: string,
  schema: Schema,
  settings: unknown,
  more: (settings: z.output<Schema>) => SettingsProblem[],
): SettingsProblem[] {
  const parsed = schema.safeParse(settings ?? {})
  if (parsed.success) return more(parsed.data)
  return problemsIn(parsed.error, `${program} accepts: ${Object.keys(schema.shape).join(', ')}.`)
}

interface ProgramInstallation {
  /** The program's name for people, such as Claude Code. */
  readonly program: string
  readonly install: string
}

/** Finds the executable on the agent's own PATH. */
export function executableOf(
  { command, env }: { readonly command: string; readonly env: Readonly<Record<string, string>> },
  { cwd }: Pick<ProgramLaunchOptions, 'cwd'>,
  installed: ProgramInstallation,
): Promise<string> {
  return findExecutable({ command, cwd, path: env.PATH ?? process.env.PATH, ...installed })
}

/** Without this error, a program whose record was deleted would silently start another conversation. */
export function conversationGone(agent: string, conversation: string, record: string): AppError {
  return new AppError('NOT_FOUND', `${agent}'s conversation ${conversation} cannot be resumed`, {
    hint: `${record} no longer exists. Reset the agent to start a new conversation.`,
    data: { conversation, record },
  })
}
