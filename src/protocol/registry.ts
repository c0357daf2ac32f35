import { AppError } from '../base/errors.ts'
import { failure, type Result } from '../base/result.ts'
import { BUILT_IN_COMMANDS, type Command, type CommandDefinition, type RawCommand } from './command.ts'

/** All commands: the built-in ones and those of an embedding application. */
export interface Registry {
  find(type: string): CommandDefinition | undefined
  /** The commands that agents can send. */
  all(): readonly CommandDefinition[]
  /** All commands, including those that only people send. */
  everyone(): readonly CommandDefinition[]
  decode(raw: RawCommand): Result<DecodedFields>
}

interface DecodedFields {
  definition: CommandDefinition
  command: Command
  /** Names of unknown fields. */
  ignored: readonly string[]
}

export function createRegistry(added: readonly CommandDefinition[] = []): Registry {
  const definitions = new Map<string, CommandDefinition>(Object.entries(BUILT_IN_COMMANDS))
  for (const definition of added) {
    if (!/^[a-z][a-z0-9_]*$/.test(definition.type)) {
      throw new AppError('INVALID_COMMAND', `"${definition.type}" is not a valid command type`, {
        hint: 'Start with a lower-case letter and use lower-case letters, digits and underscores, as in `send_message`.',
      })
    }
    if (definitions.has(definition.type)) {
      throw new AppError('INVALID_COMMAND', `The command type "${definition.type}" is defined twice`)
    }
    definitions.set(definition.type, definition)
  }
  const ordered = [...definitions.values()].filter(({ audience }) => audience === undefined)

  return {
    find: (type) => definitions.get(type.toLowerCase()),
    all: () => ordered,
    everyone: () => [...definitions.values()],
    decode(raw) {
      const definition = definitions.get(raw.type.trim().toLowerCase())
      if (definition === undefined) return failure(unknownCommand(raw.type, ordered))
      const { known, ignored } = sortFields(definition, raw)
      const parsed = definition.fields.safeParse(known)
      if (!parsed.success)
        return failure(invalidCommand(definition, known, parsed.error.issues as SchemaIssue[]))
      const command = { type: definition.type, fields: parsed.data }
      return { ok: true, value: { definition, command, ignored } }
    },
  }
}

export function isBuiltIn(definition: CommandDefinition): boolean {
  return Object.values<CommandDefinition>(BUILT_IN_COMMANDS).includes(definition)
}

/** The part of a command that the shell form needs, small enough for the service file. */
export interface ShellShape {
  fields: readonly string[]
  required: readonly string[]
  /** The field filled by positional arguments. */
  body?: string
}

/** Shapes of all commands that can be sent, by type. */
export function shellShapes(definitions: readonly CommandDefinition[]): Record<string, ShellShape> {
  return Object.fromEntries(
    definitions.map(({ type, fields, body }) => {
      const names = Object.keys(fields.shape)
      const required = names.filter((name) => !fields.shape[name]!.safeParse(undefined).success)
      return [type, { fields: names, required, ...(body === undefined ? {} : { body }) }]
    }),
  )
}

export function unknownCommand(type: string, definitions: readonly CommandDefinition[]): AppError {
  return new AppError('UNKNOWN_COMMAND', `Unknown command type: ${type.slice(0, 100)}`, {
    hint: `Known types: ${definitions.map((definition) => definition.type).join(', ')}.`,
  })
}

/** Matches field names ignoring case (S0.4) and lists unknown fields instead of using them. */
function sortFields(definition: CommandDefinition, raw: RawCommand) {
  const shape = definition.fields.shape
  const known: Record<string, unknown> = {}
  const ignored = raw.ignored === undefined ? [] : [...raw.ignored]
  for (const key of Object.keys(raw.fields)) {
    if (raw.fields[key] === null) continue
    if (Object.hasOwn(shape, key)) {
      known[key] = raw.fields[key]
      continue
    }
    const lower = key.toLowerCase().replaceAll('-', '_')
    if (Object.hasOwn(shape, lower)) known[lower] ??= raw.fields[key]
    else ignored.push(key.slice(0, 100))
  }
  return { known, ignored }
}

type SchemaIssue = {
  code?: string
  path: readonly PropertyKey[]
  message: string
  values?: readonly unknown[]
}

function invalidCommand(
  definition: CommandDefinition,
  raw: Record<string, unknown>,
  issues: readonly SchemaIssue[],
): AppError {
  const shape = definition.fields.shape
  const problems = issues.map((issue) => describe(issue, raw))
  const names = [...new Set(issues.map((issue) => String(issue.path[0] ?? '')))].filter(
    (field) => field in shape,
  )
  const hint = names.map((field) => `${field}: ${shape[field]?.description ?? 'see the protocol'}`).join('; ')
  return new AppError('INVALID_COMMAND', `${definition.type}: ${problems.join('; ')}`, {
    hint: hint === '' ? `For example: ${definition.example}` : `${hint}. For example: ${definition.example}`,
    data: { problems },
  })
}

/** Rewrites the messages of the schema library for agents and people. */
function describe(issue: SchemaIssue, raw: Record<string, unknown>): string {
  const field = String(issue.path[0] ?? '')
  const value = raw[field]
  if (value === undefined || value === '') return `"${field}" is missing`
  if (issue.code === 'invalid_value') {
    return `"${field}" must be one of: ${issue.values?.join(', ')} (got ${JSON.stringify(value)?.slice(0, 60)})`
  }
  if (issue.code === 'invalid_type') return `"${field}" has the wrong type`
  return `"${field}": ${issue.message}`
}
