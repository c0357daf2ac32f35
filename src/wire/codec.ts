/** What every text codec shares: where a command was said, what it says, or why it was not taken. */

/** UTF-8 byte offsets in the whole stream; `line` is 1-based and belongs to `offset`. */
export interface Span {
  offset: number
  end: number
  line: number
}

/** What a codec must know of a command: its name, its parameters, and the one that an element's body fills. */
export interface CommandShape {
  type: string
  fields: ReadonlySet<string>
  body?: string
}

/** The command table as the codecs see it. Types are in lower case there; the caller sees to what is said otherwise. */
export type KnownCommands = (type: string) => CommandShape | undefined

export type Notation = 'modern' | 'legacy' | 'json'

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

/** Why something that looks like a command is none (S0.23): what is wrong, and what to do about it. */
export interface ScanProblem {
  ok: false
  code: DiagnosticCode
  message: string
  hint: string
}

/** A command as it was said: nothing judged, nothing defaulted. */
export interface DecodedCommand {
  ok: true
  type: string
  fields: Record<string, string>
  /** Names that were said but are no parameter of the command (C5). */
  ignored: string[]
  notation: Notation
}

export type Scanned = (DecodedCommand & { span: Span; raw: string }) | (ScanProblem & { span: Span })

/** C20: no field may be longer than this, in UTF-8 bytes, once it is decoded. */
export const MAX_COMMAND_BYTES = 102_400

/**
 * How long a command may be as it is written, and so how much text is ever held back. Ten times the limit above,
 * because `&#x1F600;` is ten bytes for four and `\u0001` six for one: what is allowed must also be writable.
 */
export const MAX_COMMAND_TEXT = 10 * MAX_COMMAND_BYTES

export function scanProblem(code: DiagnosticCode, message: string, hint: string): ScanProblem {
  return { ok: false, code, message, hint }
}

/** Said names may be hostile and long; a message quotes only their beginning. */
export function brief(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 100)}…`
}

export function thousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}
