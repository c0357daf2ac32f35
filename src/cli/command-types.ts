import { AppError } from '../base/errors.ts'
import type { ShellShape } from '../protocol/registry.ts'
import { exchange, openConnection, type TeamLocation } from './connection/connection.ts'
import { dashed, noSuchCommand } from './errors.ts'
import { fitted } from './output/layout.ts'
import { plain, print, printJson } from './output/print.ts'
import { COMMON_OPTIONS, helpPage, type Option } from './verb.ts'

/** The part of JSON Schema that help and completion read. */
interface FieldSchema {
  description?: string
  enum?: string[]
  minLength?: number
}

export interface CommandHelp {
  type: string
  summary: string
  example: string
  /** The name under a noun: `agent list`. */
  shell?: string
  /** The field that the body fills. */
  body?: string
  schema: { properties?: Record<string, FieldSchema>; required?: string[] }
}

/** The command types built into every Orchub, read from the registry. */
export async function builtInTypes(): Promise<CommandHelp[]> {
  const [{ z }, { createRegistry }] = await Promise.all([import('zod'), import('../protocol/registry.ts')])
  return createRegistry()
    .all()
    .map(({ type, summary, example, shell, body, fields }) => ({
      type,
      summary,
      example,
      ...(shell === undefined ? {} : { shell }),
      ...(body === undefined ? {} : { body }),
      schema: z.toJSONSchema(fields, { io: 'input' }) as CommandHelp['schema'],
    }))
}

/** The field names that parsing a built-in command needs. */
export async function builtInShapes(): Promise<Record<string, ShellShape>> {
  const { createRegistry, shellShapes } = await import('../protocol/registry.ts')
  return shellShapes(createRegistry().all())
}

/** The command types of the running service, including those an application adds; undefined if it refuses to list them. */
async function fetchTypes(location: TeamLocation): Promise<CommandHelp[] | undefined> {
  const request = { method: 'GET', path: '/api/v1/commands' } as const
  const { commands } = await exchange<{ commands?: CommandHelp[] }>(await openConnection(location), request)
  return commands
}

/** Help and completion fall back to the built-in types rather than wait longer for the service. */
const PATIENCE_MS = 1000

/** The command types of the running service if it answers in time, otherwise the built-in ones. Never throws. */
export async function availableTypes(location: TeamLocation): Promise<CommandHelp[]> {
  const tooLong = new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE_MS, undefined).unref())
  const asked = await Promise.race([fetchTypes(location).catch(() => undefined), tooLong])
  return asked ?? (await builtInTypes())
}

/** The field names that parsing a command needs. */
export function shapeOf({ schema, body }: CommandHelp): ShellShape {
  return {
    fields: Object.keys(schema.properties ?? {}),
    required: schema.required ?? [],
    ...(body === undefined ? {} : { body }),
  }
}

/** Asks the service for a type this program doesn't know; throws with a suggestion if the service doesn't either. */
export async function fetchType(verb: string, type: string, location: TeamLocation): Promise<CommandHelp> {
  let known: CommandHelp[] = []
  try {
    known = (await fetchTypes(location)) ?? []
  } catch (error) {
    // A mistyped verb gets the same error whether or not the service runs.
    if (!(error instanceof AppError)) throw error
  }
  const found = known.find((one) => one.type === type.toLowerCase())
  if (found !== undefined) return found
  const reached = known.length > 0
  const hint = reached
    ? 'orc help lists all commands.'
    : 'orc help lists all commands. Commands that an application adds need its service, which is not running.'
  throw noSuchCommand(verb, hint, known.map(verbOf))
}

/** `send_message` as people type it: `send-message`. */
export function verbOf({ type }: { type: string }): string {
  return type.replaceAll('_', '-')
}

/** Prints the help of a command type, derived from its schema. */
export async function showCommandHelp(
  verb: string,
  type: string,
  location: TeamLocation,
  json: boolean,
): Promise<number> {
  const known = (await builtInTypes()).find((one) => one.type === type.toLowerCase())
  const command = known ?? (await fetchType(verb, type, location))
  if (json) printJson({ name: verbOf(command), ...command })
  else print(commandHelp(command))
  return 0
}

function commandHelp(command: CommandHelp): string {
  const { summary, example, body } = command
  const takesBody = body === undefined ? '' : ` [${body.toUpperCase()}|-]`
  const bodyNote = `${body?.toUpperCase()} is --${dashed(body ?? '')}; - reads it from standard input.`
  const page = helpPage({
    usage: `orc ${verbOf(command)} [options]${takesBody}`,
    about: [`${plain(summary)}.`, ...(body === undefined ? [] : [bodyNote])],
    options: commandOptions(command),
    // Definitions may write in_reply_to; help shows dashes everywhere.
    examples: [plain(example).replace(/(?<=\s)--[a-z]\w*/g, dashed)],
  })
  const note =
    'Sent as the agent whose token is in ORC_TOKEN, otherwise as the operator. Exit codes: orc help'
  return `${page}\n\n${fitted(note)}`
}

/** A longer list of values would push the summaries of all options to the right. */
const LONGEST_VALUE = 24

/** The options of a command type in its shell form: its fields, and those that every type has. */
export function commandOptions({ type, schema }: CommandHelp): readonly Option[] {
  const fields = Object.entries(schema.properties ?? {}).map(([field, { description, enum: choices }]) => {
    const required = schema.required?.includes(field) ? ' (required)' : ''
    const list = choices?.join('|') ?? ''
    return {
      name: dashed(field),
      value: list === '' || list.length > LONGEST_VALUE ? field.toUpperCase() : list,
      summary: `${plain(description ?? '')}${required}`,
      ...(choices === undefined ? {} : { choices }),
    }
  })
  const noAck = 'do not acknowledge the messages; they are delivered again after 30 s'
  return [
    ...fields,
    ...(type === 'mailbox_check' ? [{ name: 'no-ack', summary: noAck }] : []),
    {
      name: 'idempotency-key',
      value: 'KEY',
      summary: 'run the command only once, even if it is sent again with this key',
    },
    ...COMMON_OPTIONS,
  ]
}
