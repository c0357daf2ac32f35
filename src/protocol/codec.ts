/** Types and limits that all notations share. */

/** UTF-8 byte offsets in the whole stream; `line` is 1-based and belongs to `offset`. */
export interface Span {
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
  ok: false
  code: DiagnosticCode
  message: string
  hint: string
}

/** A command as the agent wrote it. Values are not validated yet and defaults are not filled in. */
export interface DecodedCommand {
  ok: true
  type: string
  fields: Record<string, string>
  /** Written names that are not parameters of the command (C5). */
  ignored: string[]
  notation: Notation
}

export type Scanned = (DecodedCommand & { span: Span; raw: string }) | (ScanProblem & { span: Span })

/** The longest decoded field, in UTF-8 bytes (C20). */
export const MAX_COMMAND_BYTES = 102_400

/**
 * The longest command as written, in bytes, and so the most text that is ever held back. Ten times the limit above, so
 * that every allowed field can be written: `&#65;` takes five bytes for one, `\u0041` six.
 */
export const MAX_COMMAND_TEXT = 10 * MAX_COMMAND_BYTES

export function scanProblem(code: DiagnosticCode, message: string, hint: string): ScanProblem {
  return { ok: false, code, message, hint }
}

/** The beginning of a name, for messages: names may be hostile and long. */
export function brief(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`
}

export function thousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}
