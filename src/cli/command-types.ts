import { AppError } from '../base/errors.ts'
import type { ShellShape } from '../protocol/registry.ts'
import { exchange, openConnection } from './connection/connection.ts'
import type { TeamLocation } from './connection/team-location.ts'
import type { Unknown } from './print-error.ts'

/** The part of JSON Schema that help and completion read. */
export interface FieldSchema {
  description?: string
  enum?: string[]
  minLength?: number
}

export interface CommandType {
  type: string
  summary: string
  example: string
  /** Its name among the verbs of a noun: `agent list`. */
  shell?: string
  /** The field that the body fills. */
  body?: string
  schema: { properties?: Record<string, FieldSchema>; required?: string[] }
}

/** Those of every Orchub, from the registry itself. */
export async function builtInTypes(): Promise<CommandType[]> {
  const [{ z }, { createRegistry }] = await Promise.all([import('zod'), import('../protocol/registry.ts')])
  return createRegistry()
    .all()
    .map(({ type, summary, example, shell, body, fields }) => ({
      type,
      summary,
      example,
      ...(shell === undefined ? {} : { shell }),
      ...(body === undefined ? {} : { body }),
      schema: z.toJSONSchema(fields, { io: 'input' }) as CommandType['schema'],
    }))
}

/** What reading a built-in command needs to know of it. */
export async function builtInShapes(): Promise<Record<string, ShellShape>> {
  const { createRegistry, shellShapes } = await import('../protocol/registry.ts')
  return shellShapes(createRegistry().all())
}

/** Those of the running service, with what the application it runs in has added. */
export async function askTypes(location: TeamLocation): Promise<CommandType[]> {
  const answer = await exchange<{ commands?: CommandType[] }>(await openConnection(location), {
    method: 'GET',
    path: '/api/v1/commands',
  })
  if (answer.commands === undefined) throw asError(answer)
  return answer.commands
}

/** A service that takes longer is left alone by whatever can do without it. */
const PATIENCE_MS = 1000

/** Those of the running service if there is one that answers, else those of every Orchub. Never fails. */
export async function typesHere(location: TeamLocation): Promise<CommandType[]> {
  const tooLong = new Promise<undefined>((resolve) => setTimeout(resolve, PATIENCE_MS, undefined).unref())
  const asked = await Promise.race([askTypes(location).catch(() => undefined), tooLong])
  return asked ?? (await builtInTypes())
}

/** What reading a command needs to know of it: the names of its fields. */
export function shapeOf({ schema, body }: CommandType): ShellShape {
  return {
    fields: Object.keys(schema.properties ?? {}),
    required: schema.required ?? [],
    ...(body === undefined ? {} : { body }),
  }
}

/** The type behind a verb that this program does not know, or an error that suggests what was meant. */
export async function askType(verb: string, type: string, location: TeamLocation): Promise<CommandType> {
  let known: CommandType[] = []
  try {
    known = await askTypes(location)
  } catch (error) {
    // For a mistyped verb it does not matter whether the service runs.
    if (!(error instanceof AppError)) throw error
  }
  const found = known.find((one) => one.type === type.toLowerCase())
  if (found !== undefined) return found
  const reached = known.length > 0
  throw new AppError('USAGE', `There is no command "${verb}"`, {
    hint: reached
      ? 'orc help lists them all.'
      : 'orc help lists them all. Commands that an application adds are known while its service runs; it could not be asked.',
    data: { unknown: { word: verb, among: known.map(verbOf), verbs: true } satisfies Unknown },
  })
}

/** `send_message` as it is typed: `send-message`. */
export function verbOf({ type }: { type: string }): string {
  return type.replaceAll('_', '-')
}

function asError(answer: unknown): AppError {
  const { code, message, hint } = answer as { code: AppError['code']; message: string; hint?: string }
  return new AppError(
    code ?? 'INTERNAL',
    message ?? 'The service gave no list of commands',
    hint === undefined ? {} : { hint },
  )
}
