import { AppError, type ErrorCode } from '../base/errors.ts'
import type { ErrorReceipt } from '../protocol/receipt.ts'
import { exitCode, exitOfError } from './exit-code.ts'
import { complain, OutputClosed, paint, plain, printJson } from './output/print.ts'

/** Prints what happened, the code and the hint to standard error; with --json to standard output. Returns the exit code. */
export function reportError(error: Omit<ErrorReceipt, 'status'>, json: boolean): number {
  const { code, message } = error
  const hint = code === 'UNAUTHENTICATED' ? tokenHint(error.hint) : error.hint
  if (json) printJson({ status: 'error', ...error, ...(hint === undefined ? {} : { hint }) })
  else {
    const [first, ...rest] = plain(message).split('\n')
    complain([`${paint('red', 'orc:', 'err')} ${first} (${code})`, ...rest].join('\n'))
    if (hint !== undefined) complain(`${paint('dim', 'hint:', 'err')} ${plain(hint)}`)
  }
  return exitCode(exitOfError(code))
}

/** The service's hint speaks of the Authorization header; on the command line the token comes from a file or ORC_TOKEN. */
function tokenHint(said: string | undefined): string | undefined {
  if (!said?.includes('Authorization')) return said
  return process.env.ORC_TOKEN === undefined
    ? "The operator's token in the state folder belongs to another service: check ORC_URL and ORC_HOME, or restart the service."
    : 'ORC_TOKEN was revoked or belongs to another service. Create a new one with `orc token AGENT`, or unset it to act as the operator.'
}

/** An unknown word and its candidates, for the suggestion in the error. */
export interface Unknown {
  word: string
  among: readonly string[]
  /** The names of all verbs are candidates too. */
  verbs?: true
  prefix?: string
}

type Suggest = (unknown: Unknown) => string | undefined

/** Handles every error that main.ts catches; returns the exit code. */
export function reportThrown(error: unknown, argv: readonly string[], suggest: Suggest): number {
  try {
    if (error instanceof OutputClosed) return exitCode('ok')
    return reportError(partsOf(error, suggest), wantsJson(argv))
  } catch (again) {
    if (again instanceof OutputClosed) return exitCode('error')
    throw again
  }
}

function partsOf(error: unknown, suggest: Suggest): Omit<ErrorReceipt, 'status'> {
  if (!(error instanceof AppError)) return fileFault(error as NodeJS.ErrnoException) ?? ownFault(error)
  const { code, message } = error
  const hint = [meant(error.data?.unknown as Unknown | undefined, suggest), error.hint]
    .filter(Boolean)
    .join(' ')
  return { code, message, ...(hint === '' ? {} : { hint }) }
}

/** System errors about a file that the user named. */
const FILE_FAULTS: Readonly<Record<string, readonly [code: ErrorCode, message: string, hint: string]>> = {
  ENOENT: ['NOT_FOUND', 'no such file or folder', 'Check its name.'],
  ENOTDIR: ['NOT_FOUND', 'no such file or folder', 'A part of the path is not a folder.'],
  EISDIR: ['USAGE', 'this is a folder', 'Name a file inside it.'],
  EEXIST: ['CONFLICT', 'already exists', 'Remove it, or choose another name.'],
  EACCES: ['FORBIDDEN', 'permission denied', 'Check its permissions and its owner.'],
  EPERM: ['FORBIDDEN', 'permission denied', 'Check its permissions and its owner.'],
  EROFS: ['CONFLICT', 'the file system is read-only', 'Choose a writable folder.'],
  ENOSPC: ['STORE_FULL', 'the disk is full', 'Free some space and try again.'],
}

function fileFault({ code = '', path }: NodeJS.ErrnoException): Omit<ErrorReceipt, 'status'> | undefined {
  const known = FILE_FAULTS[code]
  if (known === undefined) return undefined
  const [ours, text, hint] = known
  return { code: ours, message: path === undefined ? text : `${path}: ${text}`, hint }
}

function ownFault(error: unknown): Omit<ErrorReceipt, 'status'> {
  const { message, stack } = error instanceof Error ? error : new Error(String(error))
  const text = process.env.ORC_DEBUG ? (stack ?? message) : message
  return { code: 'INTERNAL', message: text, hint: 'Set ORC_DEBUG=1 to see a stack trace.' }
}

function meant(unknown: Unknown | undefined, suggest: Suggest): string | undefined {
  if (unknown === undefined) return undefined
  const word = suggest(unknown)
  return word === undefined ? undefined : `Did you mean ${unknown.prefix ?? ''}${word}?`
}

function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end === -1 ? undefined : end).includes('--json')
}
