/** Types, limits and the resolution of names that all notations share. */
import type { Result } from '../base/result.ts'

/** UTF-8 byte offsets in the whole stream; `line` is 1-based and belongs to `offset`. */
export interface TextSpan {
  offset: number
  end: number
  line: number
}

/** The part of a command's definition that the notations need. `body` is the parameter that an element's body fills. */
export interface CommandShape {
  type: string
  fields: ReadonlySet<string>
  body?: string
}

/** Looks up a command by its type in lower case. */
export type KnownCommands = (type: string) => CommandShape | undefined

type Notation = 'modern' | 'legacy' | 'json'

export type DiagnosticCode =
  | 'IN_CODE_BLOCK'
  | 'IN_RESPONSE_BLOCK'
  | 'IN_ECHO'
  | 'NOT_WELL_FORMED'
  | 'MISSING_CLOSE'
  | 'MISMATCHED_QUOTES'
  | 'NON_ASCII_QUOTES'
  | 'UNESCAPED_CHARACTERS'
  | 'UNKNOWN_COMMAND'
  | 'MISSING_TYPE'
  | 'TOO_LARGE'
  | 'TOO_MANY_PROBLEMS'

/** Why a text that looks like a command is not one (S0.23), and what to do about it. */
export interface ScanProblem {
  code: DiagnosticCode
  message: string
  hint: string
}

/** A command as the agent wrote it. Values are not validated yet and defaults are not filled in. */
export interface DecodedCommand {
  type: string
  fields: Record<string, string>
  /** Written names that are not parameters of the command (C5). */
  ignored: string[]
  notation: Notation
}

export type Decoded<T = DecodedCommand> = Result<T, ScanProblem>

export type Scanned =
  | ({ ok: true; span: TextSpan; raw: string } & DecodedCommand)
  | ({ ok: false; span: TextSpan } & ScanProblem)

/** The longest decoded field, in UTF-8 bytes (C20). */
export const MAX_COMMAND_BYTES = 102_400

/**
 * The longest command as written, in bytes, and so the most text that is ever held back. Ten times the limit above, so
 * that every allowed field can be written: `&#65;` takes five bytes for one, `\u0041` six.
 */
export const MAX_COMMAND_TEXT = 10 * MAX_COMMAND_BYTES

export type ScanFailure = Extract<Decoded, { ok: false }>

export function scanProblem(code: DiagnosticCode, message: string, hint: string): ScanFailure {
  return { ok: false, error: { code, message, hint } }
}

/** The beginning of a name, for messages: names may be hostile and long. */
export function brief(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`
}

export function thousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

// The names that an agent wrote, resolved to those of the command table, the same way in every notation (S0.4).

/** The command with the written type. */
export function commandNamed(written: string, known: KnownCommands): Decoded<CommandShape> {
  // Most types are written as in the table, so the plain lookup comes first.
  const shape = known(written) ?? known(plain(written))
  if (shape !== undefined) return { ok: true, value: shape }
  const type = written.trim()
  return type === '' ? missingType() : unknownCommand(type, known)
}

/** The parameter with the written name; undefined if the command has no such parameter. */
export function fieldNamed(written: string, shape: CommandShape): string | undefined {
  if (shape.fields.has(written)) return written
  const field = written.toLowerCase()
  if (shape.fields.has(field)) return field
  const underscored = field.replaceAll('-', '_')
  return shape.fields.has(underscored) ? underscored : undefined
}

/**
 * Returns which of `name` and `type` holds the command's type. Both mean the same (S0.4), unless the command that one of
 * them names has a parameter called like the other.
 */
export function chooseName(
  name: string | undefined,
  type: string | undefined,
  known: KnownCommands,
): Decoded<'name' | 'type' | undefined> {
  if (name === undefined) return { ok: true, value: type === undefined ? undefined : 'type' }
  if (type === undefined || plain(name) === plain(type)) return { ok: true, value: 'name' }
  if (known(plain(type))?.fields.has('name')) return { ok: true, value: 'type' }
  if (known(plain(name))?.fields.has('type')) return { ok: true, value: 'name' }
  return scanProblem(
    'NOT_WELL_FORMED',
    "The command's name and type differ",
    "Give the command's type once, either as name or as type.",
  )
}

function plain(written: string): string {
  return written.trim().toLowerCase()
}

export function missingType(): ScanFailure {
  return scanProblem(
    'MISSING_TYPE',
    'The command has no type',
    'Add it, as in <orc-command name="mailbox_check"></orc-command> or {"orc_command": {"type": "mailbox_check"}}.',
  )
}

export function duplicateName(name: string): ScanFailure {
  return scanProblem(
    'NOT_WELL_FORMED',
    `The command contains "${brief(name)}" twice`,
    'Give each parameter only once.',
  )
}

function unknownCommand(written: string, known: KnownCommands): ScanFailure {
  const near = /[-\s]/.test(written) ? known(written.toLowerCase().replaceAll(/[-\s]+/g, '_')) : undefined
  const hint =
    near === undefined ? 'Use one of the command types in your instructions.' : `Did you mean ${near.type}?`
  return scanProblem('UNKNOWN_COMMAND', `Unknown command type: ${brief(written)}`, hint)
}
