import { AppError } from '../model/errors.ts'
import type { ErrorReceipt } from '../model/receipt.ts'
import { exitCode, exitOfError } from './exit-code.ts'
import { complain, OutputClosed, paint, plain, printJson } from './output.ts'

/** An error as everyone meets it: what happened, its code, what to do next. With --json on standard output. */
export function reportError(error: Omit<ErrorReceipt, 'status'>, json: boolean): number {
  const { code, message, hint } = error
  if (json) printJson({ status: 'error', ...error })
  else {
    complain(`${paint('red', 'orc:', 'err')} ${plain(message)} (${code})`)
    if (hint !== undefined) complain(`${paint('dim', 'hint:', 'err')} ${plain(hint)}`)
  }
  return exitCode(exitOfError(code))
}

/** A word that is not known: whoever reports it may say what was probably meant. */
export interface Unknown {
  word: string
  among: readonly string[]
  /** Among the verbs as well. */
  verbs?: true
  prefix?: string
}

export type Suggest = (unknown: Unknown) => string | undefined

/** The end of every run that did not go well; gives the exit code. */
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
  if (!(error instanceof AppError)) {
    const { message, stack } = error instanceof Error ? error : new Error(String(error))
    const text = process.env.ORC_DEBUG ? (stack ?? message) : message
    return { code: 'INTERNAL', message: text, hint: 'With ORC_DEBUG=1 in the environment it says where.' }
  }
  const { code, message } = error
  const hint = [meant(error.data?.unknown as Unknown | undefined, suggest), error.hint]
    .filter(Boolean)
    .join(' ')
  return { code, message, ...(hint === '' ? {} : { hint }) }
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
