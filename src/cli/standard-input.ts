import { fstatSync } from 'node:fs'
import { isatty } from 'node:tty'
import { AppError } from '../base/errors.ts'
import { complain, paint } from './output/print.ts'

/** Far over what any message may hold; the service refuses those with its own limit in the error. */
const MOST_BYTES = 1024 * 1024

/** A person who typed `-` by mistake should not wait for a program that waits for them. */
export function noteTypedInput(): void {
  if (isatty(0)) complain(paint('dim', 'Reading standard input; Ctrl-D ends it.', 'err'))
}

/** All of standard input but its final line end, which `echo` and editors add and nobody means. */
export async function readInput(): Promise<string> {
  noteTypedInput()
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk)
    size += chunk.length
    if (size > MOST_BYTES) {
      throw new AppError('TOO_LARGE', `Standard input is over ${MOST_BYTES / 1024} KiB`, {
        hint: 'Send it in parts, or put it into a file and send its path.',
      })
    }
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
    return text.replace(/\r?\n$/, '')
  } catch {
    throw new AppError('INVALID_REQUEST', 'Standard input is not UTF-8 text', {
      hint: 'Send the path of a binary file rather than the file.',
    })
  }
}

/** Whether somebody piped or redirected something in. A socket may be a parent's that never ends, so it needs `-`. */
export function isInputGiven(): boolean {
  try {
    const stat = fstatSync(0)
    return stat.isFIFO() || stat.isFile()
  } catch {
    return false
  }
}
