import { AppError } from '../base/errors.ts'
import type { Team } from './team.ts'

/** Text that is too long is refused whole, never cut (C20). */
export function tooLong({ config }: Team, what: string, ...texts: readonly string[]): AppError | undefined {
  const most = config.limits.messageBytes
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  if (bytes <= most) return undefined
  return new AppError('TOO_LARGE', `The ${what} is ${bytes} bytes; it holds at most ${most}`, {
    hint: 'Put the details into a file and name its path.',
  })
}
