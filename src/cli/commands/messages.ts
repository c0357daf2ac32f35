import { createReadStream } from 'node:fs'
import { PRIORITIES } from '../../messages/message.ts'
import type { CommandShape, Scanned } from '../../protocol/scanner.ts'
import { availableTypes, type CommandHelp, shapeOf } from '../command-types.ts'
import { openClient } from '../connection/client.ts'
import { sendFields } from '../connection/send-command.ts'
import { exitCode } from '../errors.ts'
import { counted, table } from '../output/layout.ts'
import { complain, paint, plain, plainLine, print, printJson } from '../output/print.ts'
import { mailHead, mailText, shortTime } from '../output/receipt-text.ts'
import { fieldText } from '../output/request-text.ts'
import { noteTypedInput, readText } from '../standard-input.ts'
import type { Verb } from '../verb.ts'

export const list: Verb = {
  name: 'message list',
  summary: 'list messages and their delivery states, oldest first',
  options: [
    { name: 'agent', value: 'NAME', summary: 'messages from or to this agent' },
    { name: 'since', value: 'TIME', summary: '10m, 2h, 1d, or a timestamp' },
    { name: 'limit', value: 'N', summary: 'only the newest N messages (default: 200)' },
  ],
  examples: ['orc message list --since 10m', 'orc message list --agent Worker --limit 20'],
  async run({ location, given, showAll }) {
    const client = await openClient(location)
    const { messages } = await client.messages(given('agent', 'since', 'limit'))
    return showAll(messages, (all) => all.map(mailHead).join('\n'), 'There are no messages.')
  },
}

export const show: Verb = {
  name: 'message show',
  summary: 'show one message, each delivery step with its evidence, and what it waits for',
  arguments: [{ name: 'ID' }],
  examples: ['orc message show msg_12'],
  async run({ location, words, show }) {
    const client = await openClient(location)
    const message = await client.message(words[0]!)
    const steps = message.steps.map(({ at, state, evidence }) => [shortTime(at), state, plainLine(evidence)])
    const waits = message.waits_for === undefined ? [] : [`  waits: ${plainLine(message.waits_for)}`]
    return show(message, () => [mailText(message), '', table(steps, '  '), ...waits].join('\n'))
  },
}

export const send: Verb = {
  name: 'send',
  summary: 'send a message to an agent; - reads standard input',
  details:
    'Short for `orc send-message --to AGENT TEXT`. An urgent message interrupts the agent, a high one is announced to it\n' +
    'at once, and others wait until its turn ends. During a halt, messages wait for `orc service go`.',
  arguments: [{ name: 'AGENT' }, { name: 'TEXT', rest: true }],
  options: [
    { name: 'priority', value: 'PRIORITY', summary: PRIORITIES.join(', '), choices: PRIORITIES },
    {
      name: 'title',
      value: 'TEXT',
      summary: 'the subject (default: the first line of TEXT, up to 80 characters)',
    },
  ],
  examples: [
    'orc send Worker "Use the other API."',
    'orc send Worker "Stop, wrong branch." --priority urgent',
    'orc send Worker - < note.txt',
  ],
  async run(invocation) {
    const [to, ...text] = invocation.words
    const content = await readText(text)
    const fields = { to: to!, ...invocation.given('priority', 'title'), content }
    return await sendFields({ type: 'send_message', ...fields }, invocation)
  },
}

/** Agents quote commands and answers to each other; that isn't a mistake. */
const QUOTED = new Set<string>(['IN_CODE_BLOCK', 'IN_RESPONSE_BLOCK', 'IN_ECHO'])

export const scan: Verb = {
  name: 'message scan',
  summary: 'show which commands Orchub finds in a text, and why it skips others',
  details:
    'Reads FILE, or standard input without FILE or with -. Runs no command and needs no service. If one is running here,\n' +
    'it also knows the commands that its application adds.\n' +
    'With --json each line is {"ok":true,"type","fields","offset","line"} or {"ok":false,"code","message","offset","line"};\n' +
    'offsets are in bytes, and fields are unparsed.',
  arguments: [{ name: 'FILE|-', optional: true }],
  options: [
    {
      name: 'strict',
      summary: 'exit with 1 if something looks like a command but is not valid, unless it is quoted',
    },
  ],
  examples: [
    'orc message scan answer.txt',
    'my-agent | orc message scan - --json',
    'orc message scan --strict worker.md',
  ],

  async run({ words, flag, json, location }) {
    const [{ createScanner }, types] = await Promise.all([
      import('../../protocol/scanner.ts'),
      availableTypes(location),
    ])
    const known = new Map(types.map((type) => [type.type, type]))
    const scanner = createScanner((type) => scannedShape(known.get(type)))
    const counts = { commands: 0, mistakes: 0, quoted: 0 }
    const show = (found: Scanned) => {
      if (found.ok) counts.commands += 1
      else counts[QUOTED.has(found.code) ? 'quoted' : 'mistakes'] += 1
      if (json) printJson(jsonOf(found))
      else print(textOf(found, found.ok ? known.get(found.type) : undefined))
    }
    const file = words[0] ?? '-'
    if (file === '-') noteTypedInput()
    for await (const chunk of file === '-' ? process.stdin : createReadStream(file))
      scanner.push(chunk).forEach(show)
    scanner.end().forEach(show)
    if (!json) complain(summary(counts))
    return exitCode(flag('strict') && counts.mistakes > 0 ? 'error' : 'ok')
  },
}

function scannedShape(command: CommandHelp | undefined): CommandShape | undefined {
  if (command === undefined) return undefined
  const { fields, body } = shapeOf(command)
  return { type: command.type, fields: new Set(fields), ...(body === undefined ? {} : { body }) }
}

function jsonOf(found: Scanned) {
  const { offset, line } = found.span
  if (found.ok) return { ok: true, type: found.type, fields: found.fields, offset, line }
  return { ok: false, code: found.code, message: found.message, offset, line }
}

function textOf(found: Scanned, command: CommandHelp | undefined): string {
  const place = paint('dim', `line ${found.span.line}`)
  if (!found.ok) {
    const code = paint(QUOTED.has(found.code) ? 'dim' : 'red', found.code)
    return `${place}  ${code}  ${plain(found.message)}\n    ${paint('dim', `hint: ${plain(found.hint)}`)}`
  }
  const fields = Object.entries(found.fields).map(([name, value]) => fieldText(name, value))
  const ignored = found.ignored.length === 0 ? [] : [`    ignored: ${plain(found.ignored.join(', '))}`]
  const missing = command === undefined ? [] : missingFields(command, found.fields)
  const refused =
    missing.length === 0
      ? []
      : [
          `    ${paint('red', 'Orchub would refuse it:')} ${missing.join(', ')} ${missing.length === 1 ? 'is' : 'are'} missing`,
        ]
  return [`${place}  ${paint('green', found.type)}`, ...fields, ...ignored, ...refused].join('\n')
}

/** An empty value counts as missing if the schema doesn't accept it. */
function missingFields({ schema }: CommandHelp, fields: Readonly<Record<string, string>>): string[] {
  return (schema.required ?? []).filter((name) => {
    const value = fields[name]
    const { minLength = 0, enum: choices } = schema.properties?.[name] ?? {}
    return value === undefined || (value === '' && (minLength > 0 || choices !== undefined))
  })
}

function summary({ commands, mistakes, quoted }: Record<'commands' | 'mistakes' | 'quoted', number>): string {
  const parts = [counted(commands, 'command')]
  if (mistakes > 0) parts.push(`${mistakes} with mistakes`)
  if (quoted > 0) parts.push(`${quoted} quoted and ignored`)
  return parts.join(', ')
}
