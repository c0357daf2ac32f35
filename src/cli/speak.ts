import type { Receipt } from '../model/receipt.ts'
import { exchange, findPlace, type Line, openLine } from './line.ts'
import type { Place } from './place.ts'

const faults = () => import('./faults.ts')
const output = () => import('./output.ts')

/**
 * Which field the body fills, for the built-in commands: a copy of what the registry says, because loading the
 * schemas would double the time of a short command. A test compares the two. For others the service is asked.
 */
export const BODIES: Readonly<Record<string, { field?: string; required?: true }>> = {
  send_message: { field: 'content', required: true },
  mailbox_check: {},
  query_mailbox: {},
  update_status: { field: 'current_task' },
  request_action: { field: 'reason' },
  query_state: {},
  list_agents: {},
  context_status: {},
  acknowledge: { field: 'ids', required: true },
}

/** A command in the shell form, before anyone knows its parameters. */
interface Said {
  fields: Record<string, string>
  /** What is no option: the body, `-` for standard input. */
  words: string[]
  json?: true
  help?: true
  /** Leave what mailbox-check prints unread. */
  noAck?: true
  config?: string
  idempotencyKey?: string
}

/**
 * Any command type in the shell form: `orc send-message --to Worker "Hello"` says send_message. It knows no schema:
 * the service judges the fields, so that a type which an application adds works here at once (S0.16, S1.17).
 */
export async function speak(verb: string, argv: readonly string[]): Promise<number> {
  const said = await readSaid(argv)
  const type = verb.replaceAll('-', '_')
  const place = findPlace(said.config)
  if (said.help) {
    const { showCommandHelp } = await import('./command-help.ts')
    return await showCommandHelp(verb, type, place)
  }
  const body = Object.hasOwn(BODIES, type) ? BODIES[type]! : await askForBody(verb, type, place)
  const fields = await withBody(said, verb, body)
  const line = await openLine(place)
  const receipt = await say(line, { ...fields, type }, said.idempotencyKey)
  const exit = await showReceipt(receipt, said.json === true)
  const isMail = type === 'mailbox_check' && receipt.status === 'ok' && !said.noAck
  return isMail ? await acknowledge(line, receipt, fields.agent, said.json === true) : exit
}

/** `--key value` and `--key=value` become fields; the service says which ones the command has. */
async function readSaid(argv: readonly string[]): Promise<Said> {
  const said: Said = { fields: {}, words: [] }
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!
    if (word === '--') {
      said.words.push(...argv.slice(at + 1))
      break
    }
    if (word === '-' || !word.startsWith('-')) said.words.push(word)
    else if (word === '--json') said.json = true
    else if (word === '--help' || word === '-h') said.help = true
    else if (word === '--no-ack') said.noAck = true
    else at += await readOption(said, word, argv[at + 1])
  }
  return said
}

/** Gives how many of the words that follow were used. */
async function readOption(said: Said, word: string, next: string | undefined): Promise<number> {
  const [, name, attached] = /^--([^=]+)(?:=(.*))?$/s.exec(word) ?? []
  if (name === undefined) {
    const hint = 'Options begin with two dashes. Before text that begins with a dash, put --'
    throw (await faults()).usage(`"${word}" is no option`, hint)
  }
  if (name === 'token') throw (await faults()).tokenInArguments()
  const value = attached ?? next
  if (value === undefined || (attached === undefined && value.startsWith('--'))) {
    throw (await faults()).needsValue(name, 'VALUE')
  }
  if (name === 'config') said.config = value
  else if (name === 'idempotency-key') {
    // It becomes a header, so that a line end in it would begin another header.
    if (!/^[\x21-\x7e]{1,200}$/.test(value)) {
      throw (await faults()).usage(
        'This is no idempotency key',
        'At most 200 letters, digits and signs, no spaces.',
      )
    }
    said.idempotencyKey = value
  } else {
    const field = name.replaceAll('-', '_')
    if (Object.hasOwn(said.fields, field))
      throw (await faults()).usage(`--${name} is there twice`, 'Keep one of the two.')
    Object.defineProperty(said.fields, field, { value, enumerable: true })
  }
  return attached === undefined ? 1 : 0
}

/** A verb that this program does not know may be a command type of the application that the service runs in. */
async function askForBody(verb: string, type: string, place: Place) {
  const { askType } = await import('./command-types.ts')
  const { body, schema } = await askType(verb, type, place)
  return body === undefined ? {} : { field: body, required: schema.required?.includes(body) === true }
}

async function withBody(said: Said, verb: string, body: { field?: string; required?: boolean }) {
  const { fields, words } = said
  const { field } = body
  if (field === undefined) {
    if (words.length === 0) return fields
    throw (await faults()).usage(
      `${verb} takes no text: "${words.join(' ')}"`,
      `orc ${verb} --help shows its options.`,
    )
  }
  const named = Object.hasOwn(fields, field)
  if (words.length > 0 && (named || (words.includes('-') && words.length > 1))) {
    throw (await faults()).usage('The text is given twice', `Keep one of --${field}, - and the words.`)
  }
  if (words.length > 0 && words[0] !== '-') return { ...fields, [field]: words.join(' ') }
  if (words.length === 0 && (named || !body.required)) return fields
  const { isInputGiven, readInput } = await import('./input.ts')
  return words.length > 0 || isInputGiven() ? { ...fields, [field]: await readInput() } : fields
}

async function say(line: Line, command: Record<string, string>, idempotencyKey?: string): Promise<Receipt> {
  const body = JSON.stringify(command)
  const key = idempotencyKey === undefined ? {} : { idempotencyKey }
  const onSent = () => void output()
  return await exchange<Receipt>(line, { method: 'POST', path: '/api/v1/commands', body, onSent, ...key })
}

async function showReceipt(receipt: Receipt, json: boolean): Promise<number> {
  if (receipt.status !== 'delivered' || receipt.recipients !== undefined || receipt.ignored !== undefined) {
    const { showAnyReceipt } = await import('./receipt-text.ts')
    return showAnyReceipt(receipt, json)
  }
  const { print, printJson } = await output()
  if (json) printJson(receipt)
  else
    print(`delivered: ${receipt.message_id}, in the mailbox of ${receipt.to} (delivery: ${receipt.delivery})`)
  return 0
}

/** Only now that it is printed is it known to have arrived; had the output failed, all would come again. */
async function acknowledge(
  line: Line,
  checked: Receipt,
  agent: string | undefined,
  json: boolean,
): Promise<number> {
  const messages = checked.status === 'ok' ? ((checked.details?.messages ?? []) as { id: string }[]) : []
  if (messages.length === 0) return 0
  const ids = messages.map(({ id }) => id).join(' ')
  const receipt = await say(line, { type: 'acknowledge', ids, ...(agent === undefined ? {} : { agent }) })
  if (receipt.status === 'ok') return 0
  const { showAnyReceipt } = await import('./receipt-text.ts')
  return showAnyReceipt(receipt, json)
}
