import type { Receipt } from '../model/receipt.ts'
import { type Agent, agentsText } from './agents-text.ts'
import { type Mail, mailText } from './mail-text.ts'
import { paint, plain, plainLine, print } from './output.ts'

/** What an `ok` receipt tells, for people. Lists of known shape are shown as such, all else as name and value. */
export function showDetails(receipt: Receipt & { status: 'ok' }): void {
  const { messages, agents, ...others } = receipt.details ?? {}
  print(paint('bold', plain(receipt.result)))
  if (Array.isArray(agents) && agents.length > 0) print(agentsText(agents as Agent[]))
  if (Array.isArray(messages)) for (const mail of messages as Mail[]) print(`\n${mailText(mail)}`)
  for (const [name, value] of Object.entries(others)) {
    if (isWorthShowing(value))
      print(`${name}: ${plainLine(typeof value === 'string' ? value : JSON.stringify(value))}`)
  }
}

function isWorthShowing(value: unknown): boolean {
  return value !== undefined && value !== null && value !== 0 && !(Array.isArray(value) && value.length === 0)
}
