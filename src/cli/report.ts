import type { AppError } from '../model/errors.ts'
import type { ErrorReceipt } from '../model/receipt.ts'
import { exitCode, exitOfError } from './exit-code.ts'
import { complain, paint, plain, printJson } from './output.ts'

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

export function errorParts({ code, message, hint }: AppError): Omit<ErrorReceipt, 'status'> {
  return { code, message, ...(hint === undefined ? {} : { hint }) }
}
