import { z } from 'zod'
import { AppError } from '../model/errors.ts'
import { findExecutable } from './executable.ts'
import type { LaunchOrder } from './program.ts'

/** What every program can be told under `with:`, beside what is its own. */
export const sharedSettings = (command: string) => ({
  command: z.string().min(1).default(command).describe('The executable: a name on PATH, or a path.'),
  args: z.array(z.string()).default([]).describe('More arguments for it.'),
  env: z.record(z.string(), z.string()).default({}).describe('More environment variables for it.'),
})

export interface InstalledProgram {
  /** As people call it. */
  readonly program: string
  readonly install: string
}

/** The executable that the agent's own PATH leads to. */
export function executableOf(
  { command, env }: { readonly command: string; readonly env: Readonly<Record<string, string>> },
  { cwd }: Pick<LaunchOrder, 'cwd'>,
  installed: InstalledProgram,
  path = process.env.PATH,
): Promise<string> {
  return findExecutable({ command, cwd, path: env.PATH ?? path, ...installed })
}

/** Where the record of a conversation was deleted, its program would begin another one without a word. */
export function conversationGone(agent: string, conversation: string, record: string): AppError {
  return new AppError('NOT_FOUND', `${agent}'s conversation ${conversation} cannot be taken up again`, {
    hint: `${record} is gone. Reset the agent to begin a new conversation.`,
    data: { conversation, record },
  })
}
