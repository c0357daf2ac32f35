import type { ErrorReceipt, Receipt, RecipientReceipt } from '../../model/receipt.ts'
import { exitCode, exitOfReceipt } from '../exit-code.ts'
import { reportError } from '../print-error.ts'
import { complain, paint, plain, print, printJson } from './print.ts'
import { showDetails } from './receipt-details.ts'

/** What was done goes to standard output, what was not to standard error; with --json all goes to the first. */
export function showAnyReceipt(receipt: Receipt, json: boolean): number {
  if (receipt.status === 'error') reportError(receipt, json)
  else if (json) printJson(receipt)
  else {
    showText(receipt)
    // Only where the service is of another version than this program, which checks names itself.
    if (receipt.ignored !== undefined) complain(`not used: ${plain(receipt.ignored.join(', '))}`)
  }
  return exitCode(exitOfReceipt(receipt))
}

function showText(receipt: Exclude<Receipt, ErrorReceipt>): void {
  switch (receipt.status) {
    case 'delivered': {
      const recipients: readonly RecipientReceipt[] = receipt.recipients ?? [
        { ...receipt, status: 'delivered' },
      ]
      for (const { to, status, message_id, request_id, reason } of recipients) {
        if (status === 'delivered')
          print(`delivered: ${message_id}, in the mailbox of ${plain(to)} (delivery: queued)`)
        else
          print(
            `${status}: ${plain(to)}${request_id === undefined ? '' : `, ${request_id}`}: ${plain(reason ?? '')}`,
          )
      }
      break
    }
    case 'ok':
      showDetails(receipt)
      break
    case 'blocked':
      complain(`${paint('red', 'blocked:', 'err')} ${plain(receipt.reason)}`)
      break
    case 'held':
      complain(`${paint('yellow', 'held:', 'err')} ${receipt.request_id}: ${plain(receipt.reason)}`)
  }
}
