import { fstatSync } from 'node:fs'
import { isatty } from 'node:tty'
import { AppError } from '../base/errors.ts'
import { remark } from './output/print.ts'

/** Far above any message limit, so that the service's own limit decides in all realistic cases. */
const MAX_BYTES = 1024 * 1024

/** Tells a person who typed `-` by mistake that the program waits for input. */
export function noteTypedInput(): void {
  if (isatty(0)) remark('Reading standard input; end it with Ctrl-D.')
}

/** Reads standard input without the final line end that `echo` and editors add. */
export async function readInput(): Promise<string> {
  noteTypedInput()
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk)
    size += chunk.length
    if (size > MAX_BYTES) {
      throw new AppError('TOO_LARGE', `Standard input is over ${MAX_BYTES / 1024} KiB`, {
        hint: 'Send it in parts, or put it into a file and send its path.',
      })
    }
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
    return text.replace(/\r?\n$/, '')
  } catch {
    throw new AppError('INVALID_REQUEST', 'Standard input is not UTF-8 text', {
      hint: 'Send the path of a binary file instead of its content.',
    })
  }
}

/** The words as one text, or standard input for `-` or, without words, from a pipe or a redirected file. */
export async function readText(words: readonly string[], missing?: () => AppError): Promise<string> {
  if (words.length > 1 || (words.length === 1 && words[0] !== '-')) return words.join(' ')
  if (words.length === 0 && missing !== undefined && !isInputGiven()) throw missing()
  return await readInput()
}

/** True for a pipe or a redirected file. A socket may belong to a parent process and never end, so it needs `-`. */
export function isInputGiven(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile()
  } catch {
    return false
  }
}
