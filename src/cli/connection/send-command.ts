import type { Receipt } from '../../protocol/receipt.ts'
import type { ShellShape } from '../../protocol/registry.ts'
import {
  type Connection,
  exchange,
  findTeamLocation,
  notedShape,
  openConnection,
  readArguments,
  type TeamLocation,
} from './connection.ts'

const errors = () => import('../errors.ts')
const output = () => import('../output/print.ts')

/** A command in the shell form, before its type is known. */
interface ParsedCommand {
  fields: Record<string, string>
  /** Positional words: the body, or `-` for standard input. */
  words: string[]
  json?: true
  help?: true
  /** Leave what mailbox-check prints unread. */
  noAck?: true
  config?: string
  idempotencyKey?: string
}

/**
 * Sends any command type in its shell form: `orc send-message --to Worker "Hello"` sends send_message. Types that an
 * application adds work without changes here (S0.16, S1.17). Field names are checked here, because a typo must not
 * send half a command; the service checks the values.
 */
export async function sendCommand(verb: string, argv: readonly string[]): Promise<number> {
  const parsed = await parseCommand(argv)
  const type = verb.replaceAll('-', '_')
  const location = findTeamLocation(parsed.config)
  if (parsed.help) {
    const { showCommandHelp } = await import('../command-types.ts')
    return await showCommandHelp(verb, type, location, parsed.json === true)
  }
  const shape = notedShape(location, type) ?? (await findShape(verb, type, location))
  if (parsed.noAck && type !== 'mailbox_check') throw await noSuchField(verb, 'no-ack', shape.fields)
  const fields = await withBody(await named(parsed.fields, verb, shape), parsed.words, verb, shape)
  const connection = await openConnection(location)
  const receipt = await post(connection, { ...fields, type }, parsed.idempotencyKey)
  const exit = await showReceipt(receipt, parsed.json === true)
  const isMail = type === 'mailbox_check' && receipt.status === 'ok' && !parsed.noAck
  return isMail ? await acknowledge(connection, receipt, fields.agent, parsed.json === true) : exit
}

/** Sends a command whose fields the verb knows, such as `orc send`. */
export async function sendFields(
  command: Record<string, string>,
  { location, json }: { location: TeamLocation; json: boolean },
): Promise<number> {
  return await showReceipt(await post(await openConnection(location), command), json)
}

const FLAGS: ReadonlySet<string | undefined> = new Set(['json', 'help', 'no-ack'])

/** Every option but the flags and two others becomes a field, whatever the command. */
async function parseCommand(argv: readonly string[]): Promise<ParsedCommand> {
  const { words, options } = await readArguments(argv, async (word, name) => {
    if (word === '-h') return { name: 'help' }
    if (name !== undefined) return FLAGS.has(name) ? { name } : { name, value: 'VALUE' }
    const hint = 'Options begin with two dashes. Before text that begins with a dash, put --'
    throw (await errors()).usage(`Unknown option "${word}"`, hint)
  })
  const parsed: ParsedCommand = { fields: {}, words }
  for (const [name, value] of options) {
    if (name === 'json') parsed.json = true
    else if (name === 'help') parsed.help = true
    else if (name === 'no-ack') parsed.noAck = true
    else if (name === 'config') parsed.config = value!
    else if (name === 'idempotency-key') {
      ;(await errors()).checkIdempotencyKey(value!)
      parsed.idempotencyKey = value!
    } else {
      const field = fold(name)
      if (Object.hasOwn(parsed.fields, field))
        throw (await errors()).usage(`--${name} is given twice`, 'Keep one of the two.')
      Object.defineProperty(parsed.fields, field, { value, enumerable: true })
    }
  }
  return parsed
}

/** `--in-reply-to`, `--in_reply_to` and `--In-Reply-To` are one field (S0.4). */
function fold(name: string): string {
  return name.replaceAll('-', '_').toLowerCase()
}

/** Used when no service.json lists the command: tries the built-in types, then asks the service at ORC_URL. */
async function findShape(verb: string, type: string, location: TeamLocation): Promise<ShellShape> {
  const { fetchType, builtInShapes, shapeOf } = await import('../command-types.ts')
  const builtIn = await builtInShapes()
  return Object.hasOwn(builtIn, type) ? builtIn[type]! : shapeOf(await fetchType(verb, type, location))
}

async function noSuchField(verb: string, name: string, fields: readonly string[]) {
  const { dashed, noSuchOption } = await errors()
  return noSuchOption(verb, `--${dashed(name)}`, fields.map(dashed))
}

/** Renames the fields to the spelling that the command type uses. */
async function named(parsed: ParsedCommand['fields'], verb: string, { fields, required, body }: ShellShape) {
  const given: Record<string, string> = {}
  for (const name of Object.keys(parsed)) {
    const field = fields.find((one) => fold(one) === name)
    if (field === undefined) throw await noSuchField(verb, name, fields)
    given[field] = parsed[name]!
  }
  const missing = required.find((field) => field !== body && !Object.hasOwn(given, field))
  if (missing !== undefined) {
    const { dashed, seeHelp, usage } = await errors()
    throw usage(`--${dashed(missing)} is missing`, seeHelp(verb))
  }
  return given
}

async function withBody(
  fields: Record<string, string>,
  words: readonly string[],
  verb: string,
  { body, required }: ShellShape,
): Promise<Record<string, string>> {
  if (body === undefined) {
    if (words.length === 0) return fields
    const { seeHelp, usage } = await errors()
    throw usage(`${verb} takes no text: "${words.join(' ')}"`, seeHelp(verb))
  }
  const isNamed = Object.hasOwn(fields, body)
  if (words.length > 0 && (isNamed || (words.includes('-') && words.length > 1))) {
    const { dashed, usage } = await errors()
    throw usage('The text is given twice', `Keep one of --${dashed(body)}, - and the words.`)
  }
  if (words.length > 0 && words[0] !== '-') return { ...fields, [body]: words.join(' ') }
  const isNeeded = !isNamed && required.includes(body)
  if (words.length === 0 && !isNeeded) return fields
  const { isInputGiven, readInput } = await import('../standard-input.ts')
  if (words.length === 0 && !isInputGiven()) {
    const { seeHelp, usage } = await errors()
    const name = body.toUpperCase()
    const hint = `Put ${name} after the options, or - to read it from standard input. ${seeHelp(verb)}`
    throw usage(`${name} is missing`, hint)
  }
  return { ...fields, [body]: await readInput() }
}

async function post(
  connection: Connection,
  command: Record<string, string>,
  idempotencyKey?: string,
): Promise<Receipt> {
  const body = JSON.stringify(command)
  const key = idempotencyKey === undefined ? {} : { idempotencyKey }
  const onSent = () => void output()
  return await exchange<Receipt>(connection, {
    method: 'POST',
    path: '/api/v1/commands',
    body,
    onSent,
    ...key,
  })
}

async function showReceipt(receipt: Receipt, json: boolean): Promise<number> {
  if (receipt.status !== 'delivered' || receipt.recipients !== undefined || receipt.ignored !== undefined) {
    const { showAnyReceipt } = await import('../output/receipt-text.ts')
    return showAnyReceipt(receipt, json)
  }
  const { print, printJson } = await output()
  if (json) printJson(receipt)
  else
    print(`delivered: ${receipt.message_id}, in the mailbox of ${receipt.to} (delivery: ${receipt.delivery})`)
  return 0
}

/** Acknowledges messages after printing them: if printing had failed, they would be delivered again. */
async function acknowledge(
  connection: Connection,
  checked: Receipt,
  agent: string | undefined,
  json: boolean,
): Promise<number> {
  const messages = checked.status === 'ok' ? ((checked.details?.messages ?? []) as { id: string }[]) : []
  if (messages.length === 0) return 0
  const ids = messages.map(({ id }) => id).join(' ')
  const receipt = await post(connection, {
    type: 'acknowledge',
    ids,
    ...(agent === undefined ? {} : { agent }),
  })
  if (receipt.status === 'ok') return 0
  const { showAnyReceipt } = await import('../output/receipt-text.ts')
  return showAnyReceipt(receipt, json)
}
