import type { AuditEntry } from './entry.ts'

/** The fields of an entry that its readable line shows. */
export type AuditLine = Pick<AuditEntry, 'at' | 'type' | 'actor' | 'subject' | 'text' | 'confidence'>

/**
 * Characters that could end the line, control a terminal or reorder text: control, format (including bidirectional and
 * invisible ones) and separator characters, and lone surrogates. Joiners stay, because emoji and several scripts need them.
 * The backslash is escaped because it starts escapes.
 */
const UNSAFE = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\]--[\u200c\u200d]]/gv
/** In names, also the characters that separate names. */
const UNSAFE_IN_NAME = /[[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\\\[\]→]--[\u200c\u200d]]/gv
const NAMED_ESCAPES: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' }

const CONFIDENCE = String.raw`\(confidence: (-?\d[\d.e+-]*)\)`
const ENDS_LIKE_CONFIDENCE = new RegExp(`${CONFIDENCE}$`)
const LINE = new RegExp(
  String.raw`^\[([^\]]+)\] \[([^\]→]*)(?:→([^\]]*))?\] ([^\s:]+): (.*?)(?: ${CONFIDENCE})?$`,
)

/** Formats `[ts] [from→to] KIND: text (confidence: n)` (S3.22), always as one line. */
export function formatLine(entry: AuditLine): string {
  const from = escapeUnsafe(entry.actor, UNSAFE_IN_NAME)
  const to = entry.subject === undefined ? '' : `→${escapeUnsafe(entry.subject, UNSAFE_IN_NAME)}`
  const head = `[${entry.at}] [${from}${to}] ${entry.type.toUpperCase()}: `
  const text = escapeUnsafe(entry.text, UNSAFE)
  if (entry.confidence !== undefined) return `${head}${text} (confidence: ${entry.confidence})`
  // Text must not imitate a confidence that the entry doesn't have.
  return head + text.replace(ENDS_LIKE_CONFIDENCE, '\\$&')
}

/** Inverse of `formatLine`; undefined for other text. */
export function parseLine(line: string): AuditLine | undefined {
  const match = LINE.exec(line)
  if (match === null) return undefined
  const [, at, from, to, kind, text, confidence] = match
  const parts: AuditLine = {
    at: at!,
    type: kind!.toLowerCase(),
    actor: restore(from!),
    text: restore(text!),
  }
  if (to !== undefined) parts.subject = restore(to)
  if (confidence !== undefined) parts.confidence = Number(confidence)
  return parts
}

/** Escapes hostile text for one line of a terminal or a log, and keeps its content visible. */
function escapeUnsafe(text: string, unsafe: RegExp): string {
  return text.replace(unsafe, (character) => {
    return NAMED_ESCAPES[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`
  })
}

function restore(text: string): string {
  return text.replace(
    /\\(?:u\{((?:10)?[0-9a-f]{1,4}|[0-9a-f]{5})\}|(.))/gu,
    (_, code: string | undefined, character: string) => {
      if (code !== undefined) return String.fromCodePoint(Number.parseInt(code, 16))
      return { n: '\n', r: '\r', t: '\t' }[character] ?? character
    },
  )
}
