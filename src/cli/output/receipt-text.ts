import type { AnswerOf } from '../../api/contract.ts'
import type { ErrorReceipt, Receipt, RecipientReceipt } from '../../protocol/receipt.ts'
import { exitCode, exitOfReceipt, reportError } from '../errors.ts'
import { table } from './layout.ts'
import { complain, paint, plain, plainLine, print, printJson } from './print.ts'

/** Prints success to standard output and refusals to standard error; with --json everything to standard output. */
export function showAnyReceipt(receipt: Receipt, json: boolean): number {
  if (receipt.status === 'error') reportError(receipt, json)
  else if (json) printJson(receipt)
  else {
    showText(receipt)
    // Only a service of another version ignores fields, because this program checks names before it sends.
    if (receipt.ignored !== undefined) complain(`ignored: ${plain(receipt.ignored.join(', '))}`)
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

type Deliveries = AnswerOf<'state'>['deliveries']

/** The details of an `ok` receipt for people: known lists as tables, everything else as `name: value`. */
function showDetails(receipt: Receipt & { status: 'ok' }): void {
  const { messages, agents, deliveries, ...others } = receipt.details ?? {}
  print(paint('bold', plain(receipt.result)))
  if (Array.isArray(agents) && agents.length > 0) {
    const waiting = Array.isArray(deliveries) ? waitingFor(deliveries as Deliveries) : undefined
    print(agentsText(agents as ListedAgent[], waiting))
  }
  if (Array.isArray(messages)) for (const mail of messages as ShownMessage[]) print(`\n${mailText(mail)}`)
  for (const [name, value] of Object.entries(others)) {
    const isQueryField = Array.isArray(messages) && QUERY_FIELDS.has(name)
    if (!isQueryField && isWorthShowing(name, value, receipt.result)) print(`${name}: ${valueText(value)}`)
  }
}

/** Next to messages, these fields only repeat the query. */
const QUERY_FIELDS = new Set(['agent', 'filter'])

/** Skips empty values and values that the first line already contains. */
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

export type ListedAgent = AnswerOf<'agents'>['agents'][number]

/** A line per agent; `unread` adds a column. */
export function agentsText(agents: readonly ListedAgent[], unread?: ReadonlyMap<string, number>): string {
  return table(
    agents.map((agent) => [
      agent.name,
      agent.status === agent.session ? agent.status : `${agent.status} (session ${agent.session})`,
      ...(unread === undefined ? [] : [`${unread.get(agent.name) ?? 0} waiting`]),
      plainLine(
        [
          ...[agent.waits_for && `waits: ${agent.waits_for}`, agent.program, contextText(agent)],
          ...[agent.current_task, agent.parent && `reports to ${agent.parent}`, unread && outside(agent)],
        ]
          .filter(Boolean)
          .join('; '),
      ),
    ]),
    '  ',
  )
}

/** Orchub doesn't start such an agent, so its status stays unknown until it reports one. */
function outside({ runtime, status }: ListedAgent): string | false {
  return runtime === 'none' && status === 'unknown' && 'runs outside Orchub, with its token'
}

function contextText({ context, spent }: ListedAgent): string {
  const full = context?.percent === undefined ? '' : `context ${context.percent} %`
  return [full, spent === undefined ? '' : `spent ${spent.toFixed(2)}`].filter(Boolean).join(', ')
}

/** Final delivery states. */
const DONE: ReadonlySet<string> = new Set(['read', 'failed'])

/** Counts the messages that are still on their way to each agent. */
export function waitingFor(
  deliveries: readonly { agent: string; state: string; count: number }[],
): ReadonlyMap<string, number> {
  const waiting = new Map<string, number>()
  for (const { agent, state, count } of deliveries) {
    if (!DONE.has(state)) waiting.set(agent, (waiting.get(agent) ?? 0) + count)
  }
  return waiting
}

type ShownMessage = AnswerOf<'messages'>['messages'][number]

export function mailHead(mail: ShownMessage): string {
  const parts = [
    paint('bold', mail.id),
    `${mail.from} → ${mail.to}`,
    ...(mail.priority === 'normal' ? [] : [paint('yellow', mail.priority)]),
    paint('dim', `${shortTime(mail.at)}, ${mail.delivery}`),
  ]
  return `${parts.join('  ')}  ${plainLine(mail.title)}`
}

/** Indents the content, so that no line of it can imitate our own output. */
export function mailText(mail: ShownMessage): string {
  // A message without a title has its first words as title; showing both would repeat them.
  const isOwnWords = mail.title.trim() === mail.content.trim()
  const head = mailHead(isOwnWords ? { ...mail, title: '' } : mail).trimEnd()
  return `${head}\n${indent(plain(mail.content))}`
}

export function indent(text: string): string {
  return text.replace(/^/gm, '    ')
}

/** To the second; --json has the full timestamp. */
export function shortTime(iso: string): string {
  return iso.replace(/\.\d+Z$/, 'Z')
}
