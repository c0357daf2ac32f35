import type { Receipt } from '../model/receipt.ts'
import { BODIES } from './bodies.ts'
import { exchange, parseJson } from './exchange.ts'
import { exitCode, exitOfReceipt } from './exit-code.ts'
import { complain, paint, plain, print, printJson } from './output.ts'
import { findService, findToken, type Place } from './place.ts'
import { reportError } from './report.ts'
import { readSaid, type Said, usage } from './said.ts'

export interface Line {
  place: Place
  address: string
  token: string
}

/**
 * Any command type in the shell form: `orc send-message --to Worker "Hello"` says send_message. It knows no schema:
 * the service judges the fields, so that a type which an application adds works here at once (S0.16, S1.17).
 */
export async function speak(verb: string, argv: readonly string[], locate: (config?: string) => Place) {
  const said = readSaid(argv)
  const type = verb.replaceAll('-', '_')
  const place = locate(said.config)
  if (said.help) {
    const { showCommandHelp } = await import('./command-help.ts')
    return await showCommandHelp(verb, type, place)
  }
  const body = BODIES[type] ?? (await askForBody(verb, type, place))
  const fields = await withBody(said, verb, body)
  const line = { place, address: findService(place), token: findToken(place) }
  const receipt = await say(line, { ...fields, type }, said.idempotencyKey)
  await showReceipt(receipt, said.json)
  if (type === 'mailbox_check' && receipt.status === 'ok' && !said.keepUnread) {
    return await acknowledge(line, receipt, fields.agent, said.json)
  }
  return exitCode(exitOfReceipt(receipt))
}

async function say(line: Line, command: Record<string, string>, idempotencyKey?: string): Promise<Receipt> {
  const { body } = await exchange(line.address, {
    method: 'POST',
    path: '/api/v1/commands',
    token: line.token,
    body: JSON.stringify(command),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
  })
  return parseJson<Receipt>(line.address, body)
}

/** A verb that this program does not know may be a command type of the application that the service runs in. */
async function askForBody(verb: string, type: string, place: Place) {
  const { askType } = await import('./command-types.ts')
  const found = await askType(verb, type, place)
  const required = found.body !== undefined && found.schema.required?.includes(found.body)
  return {
    ...(found.body === undefined ? {} : { field: found.body }),
    ...(required ? { required: true } : {}),
  }
}

async function withBody(said: Said, verb: string, body: { field?: string; required?: boolean }) {
  const { fields, words } = said
  const { field } = body
  if (field === undefined) {
    if (words.length === 0) return fields
    throw usage(`${verb} takes no text: "${words.join(' ')}"`, `orc ${verb} --help shows its options.`)
  }
  const named = Object.hasOwn(fields, field)
  if (named && words.length > 0) throw usage(`--${field} and text are both given`, 'Keep one of the two.')
  if (words.includes('-') && words.length > 1)
    throw usage('- and text are both given', 'Keep one of the two.')
  if (words.length > 0 && words[0] !== '-') return { ...fields, [field]: words.join(' ') }
  if (words.length === 0 && (named || !body.required)) return fields
  const { isInputGiven, readInput } = await import('./input.ts')
  return words.length > 0 || isInputGiven() ? { ...fields, [field]: await readInput() } : fields
}

async function showReceipt(receipt: Receipt, json: boolean): Promise<void> {
  if (json) return printJson(receipt)
  switch (receipt.status) {
    case 'delivered':
      for (const { to, status, message_id, request_id, reason } of receipt.recipients ?? [receipt]) {
        if (status === 'delivered')
          print(`delivered: ${message_id}, in the mailbox of ${plain(to)} (delivery: queued)`)
        else
          print(`${status} for ${plain(to)}: ${plain(reason ?? '')}${request_id ? ` (${request_id})` : ''}`)
      }
      break
    case 'ok': {
      const { showDetails } = await import('./details.ts')
      showDetails(receipt)
      break
    }
    case 'blocked':
      complain(`${paint('red', 'blocked:', 'err')} ${plain(receipt.reason)}`)
      break
    case 'held':
      complain(`${paint('yellow', 'held:', 'err')} ${receipt.request_id}, ${plain(receipt.reason)}`)
      break
    case 'error':
      reportError(receipt, false)
  }
  if (receipt.ignored !== undefined) complain(`not used: ${plain(receipt.ignored.join(', '))}`)
}

/** Only now that it is printed is it known to have arrived; had the output failed, all would come again. */
async function acknowledge(
  line: Line,
  checked: Receipt & { status: 'ok' },
  agent: string | undefined,
  json: boolean,
) {
  const messages = (checked.details?.messages ?? []) as { id: string }[]
  if (messages.length === 0) return 0
  const ids = messages.map(({ id }) => id).join(' ')
  const receipt = await say(line, { type: 'acknowledge', ids, ...(agent === undefined ? {} : { agent }) })
  if (receipt.status === 'ok') return 0
  if (receipt.status === 'error') return reportError(receipt, json)
  complain('The messages above stay unread: acknowledging them was not allowed.')
  return exitCode(exitOfReceipt(receipt))
}
