/** How lines begin: what CommonMark's block structure means for code, and no more of it. */
import {
  ASTERISK,
  BACKTICK,
  FULL_STOP,
  GREATER_THAN,
  HASH,
  HYPHEN,
  isBlank,
  isDigit,
  NEWLINE,
  PLUS,
  RIGHT_PARENTHESIS,
  SPACE,
  TAB,
  TILDE,
} from '../ascii.ts'

/** Quote marks, list markers and indentation in front of a line's text are looked at no further than this. */
export const PREFIX_LIMIT = 256

/** `unsettled`: the line is not long enough yet to tell. */
export type LineStart = 'plain' | 'break' | 'unsettled'

/**
 * Whether the line that begins at `at` ends a paragraph, beyond which inline code does not reach: it is blank, a
 * fence, a heading or a list item.
 */
export function lineStart(bytes: Uint8Array, at: number): LineStart {
  const limit = Math.min(bytes.length, at + PREFIX_LIMIT)
  let i = at
  while (i < limit && (isBlank(bytes[i]!) || bytes[i] === GREATER_THAN)) i++
  if (i === limit) return limit === bytes.length ? 'unsettled' : 'plain'
  switch (bytes[i]) {
    case NEWLINE:
      return 'break'
    case BACKTICK:
    case TILDE:
      return repeats(bytes, i, bytes[i]!, 3)
    case HASH:
      return endsMarker(
        bytes,
        skip(bytes, i, (byte) => byte === HASH, 6),
      )
    case HYPHEN:
    case ASTERISK:
    case PLUS:
      return endsMarker(bytes, i + 1)
  }
  if (!isDigit(bytes[i]!)) return 'plain'
  const dot = skip(bytes, i, isDigit, 9)
  if (dot === bytes.length) return 'unsettled'
  return bytes[dot] === FULL_STOP || bytes[dot] === RIGHT_PARENTHESIS ? endsMarker(bytes, dot + 1) : 'plain'
}

function repeats(bytes: Uint8Array, at: number, byte: number, times: number): LineStart {
  const end = skip(bytes, at, (other) => other === byte, times)
  if (end - at === times) return 'break'
  return end === bytes.length ? 'unsettled' : 'plain'
}

function skip(bytes: Uint8Array, from: number, accepts: (byte: number) => boolean, atMost: number): number {
  let i = from
  while (i < bytes.length && i - from < atMost && accepts(bytes[i]!)) i++
  return i
}

function endsMarker(bytes: Uint8Array, at: number): LineStart {
  if (at >= bytes.length) return 'unsettled'
  return isBlank(bytes[at]!) || bytes[at] === NEWLINE ? 'break' : 'plain'
}

/** What stands between a line's beginning and its text. Tabs go to the next multiple of four. */
export interface Prefix {
  column: number
  quotes: number
  hasListMarker: boolean
}

const NO_PREFIX: Prefix = { column: 0, quotes: 0, hasListMarker: false }

/** The prefix of the line up to `at`, or undefined when other text precedes `at` on it. */
export function prefixBefore(bytes: Uint8Array, at: number): Prefix | undefined {
  if (at === 0 || bytes[at - 1] === NEWLINE) return NO_PREFIX
  let start = at
  while (start > 0 && bytes[start - 1] !== NEWLINE) {
    if (at - start === PREFIX_LIMIT || !mayBePrefix(bytes[start - 1]!)) return undefined
    start--
  }
  return readPrefix(bytes, start, at)
}

function mayBePrefix(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === GREATER_THAN || isBullet(byte) || isOrdinal(byte)
}

function isBullet(byte: number): boolean {
  return byte === HYPHEN || byte === ASTERISK || byte === PLUS
}

function isOrdinal(byte: number): boolean {
  return isDigit(byte) || byte === FULL_STOP || byte === RIGHT_PARENTHESIS
}

function readPrefix(bytes: Uint8Array, start: number, end: number): Prefix | undefined {
  const prefix = { column: 0, quotes: 0, hasListMarker: false }
  for (let i = start; i < end; i++) {
    const byte = bytes[i]!
    if (byte === TAB) prefix.column += 4 - (prefix.column % 4)
    else prefix.column++
    if (byte === GREATER_THAN) prefix.quotes++
    if (byte === SPACE || byte === TAB || byte === GREATER_THAN) continue
    const marker = isBullet(byte) ? i + 1 : skip(bytes, i, isDigit, 9) + 1
    const isMarker = isBullet(byte) || (isDigit(byte) && isOrdinal(bytes[marker - 1]!))
    if (!isMarker || marker >= end || !isBlank(bytes[marker]!)) return undefined
    prefix.hasListMarker = true
    prefix.column += marker - 1 - i
    i = marker - 1
  }
  return prefix
}
