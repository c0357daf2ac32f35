import type { Receipt } from '../../model/receipt.ts'
import type { AnswerOf } from '../../service/contract.ts'
import { type Agent, agentsText, waitingFor } from './agent-table.ts'
import { type Mail, mailText } from './message-text.ts'
import { paint, plain, plainLine, print } from './print.ts'

type Deliveries = AnswerOf<'state'>['deliveries']

/** What an `ok` receipt tells, for people. Lists of known shape are shown as such, all else as name and value. */
export function showDetails(receipt: Receipt & { status: 'ok' }): void {
  const { messages, agents, deliveries, ...others } = receipt.details ?? {}
  print(paint('bold', plain(receipt.result)))
  if (Array.isArray(agents) && agents.length > 0) {
    const waiting = Array.isArray(deliveries) ? waitingFor(deliveries as Deliveries) : undefined
    print(agentsText(agents as Agent[], waiting))
  }
  if (Array.isArray(messages)) for (const mail of messages as Mail[]) print(`\n${mailText(mail)}`)
  for (const [name, value] of Object.entries(others)) {
    const isQuestion = Array.isArray(messages) && QUESTION.has(name)
    if (!isQuestion && isWorthShowing(name, value, receipt.result)) print(`${name}: ${valueText(value)}`)
  }
}

/** Beside messages these only repeat what was asked for. */
const QUESTION = new Set(['agent', 'filter'])

/** Not what is nothing, and not what the first line has said already. */
function isWorthShowing(name: string, value: unknown, result: string): boolean {
  if (value === undefined || value === null || value === 0) return false
  if (name === 'paused' && value === false) return false
  if (Array.isArray(value)) return value.length > 0
  if (typeof value === 'boolean') return !result.includes(name)
  if (typeof value === 'object') return Object.keys(value).length > 0
  return !result.split(/[\s,;:]+/).includes(String(value))
}

function valueText(value: unknown): string {
  if (typeof value === 'string') return plainLine(value)
  if (Array.isArray(value) && value.every((one) => typeof one === 'string'))
    return plainLine(value.join(', '))
  return isFlat(value)
    ? Object.entries(value)
        .map(([name, one]) => plainLine(`${name} ${one}`))
        .join(', ')
    : plainLine(JSON.stringify(value))
}

function isFlat(value: unknown): value is Record<string, string | number | boolean> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((one) => ['string', 'number', 'boolean'].includes(typeof one))
}
