/** The part of CommonMark's block structure that decides what is code: line prefixes, paragraph breaks and fences. */
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

/** Longer prefixes (quote marks, list markers and indentation before a line's text) are not recognized. */
export const PREFIX_LIMIT = 256

/** `unsettled`: the line is too short to decide, and more input may follow. */
type LineStart = 'plain' | 'break' | 'unsettled'

/**
 * Whether the line that begins at `at` ends the paragraph before it, and inline code with it: a blank line, a fence, a
 * heading or a list item does.
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

/** The characters between a line's beginning and its text. A tab advances to the next multiple of four columns. */
interface Prefix {
  column: number
  quotes: number
  hasListMarker: boolean
}

const NO_PREFIX: Prefix = { column: 0, quotes: 0, hasListMarker: false }

/** The prefix of the line up to `at`; undefined if other text precedes `at` on the line. */
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

/** An opening fence. More indentation is allowed than in CommonMark, because agents put fences into lists. */
export interface Fence {
  mark: number
  length: number
  column: number
  quotes: number
}

/** Fences are recognized by at most this many marks, and by this much of the rest of their line. */
const RUN_LIMIT = 1024
const LINE_LIMIT = 1024

/** The fence that the run of marks at `at` opens. */
export function openingFence(
  bytes: Uint8Array,
  at: number,
  isFinal: boolean,
): Fence | undefined | 'unsettled' {
  const prefix = prefixBefore(bytes, at)
  if (prefix === undefined) return undefined
  const mark = bytes[at]!
  const info = endOfRun(bytes, at)
  if (info - at < 3) return info < bytes.length || isFinal ? undefined : 'unsettled'
  const limit = Math.min(bytes.length, info + LINE_LIMIT)
  let i = info
  for (; i < limit && bytes[i] !== NEWLINE; i++) {
    // In CommonMark, another backtick on the line makes the run inline code.
    if (bytes[i] === BACKTICK && mark === BACKTICK) return undefined
  }
  if (i === bytes.length && i < info + LINE_LIMIT && !isFinal) return 'unsettled'
  return { mark, length: info - at, column: prefix.column, quotes: prefix.quotes }
}

/** The end of the line on which the run of marks at `at` closes the fence; undefined if the run doesn't close it. */
export function closingFence(
  bytes: Uint8Array,
  at: number,
  fence: Fence,
  isFinal: boolean,
): number | undefined | 'unsettled' {
  if (bytes[at] !== fence.mark) return undefined
  const prefix = prefixBefore(bytes, at)
  if (prefix === undefined || prefix.hasListMarker) return undefined
  // A run that is nested deeper than the fence belongs to the code.
  if (prefix.quotes > fence.quotes || prefix.column > fence.column + 3) return undefined
  let i = endOfRun(bytes, at)
  if (i === bytes.length && !isFinal) return 'unsettled'
  if (i - at < fence.length) return undefined
  const limit = i + LINE_LIMIT
  while (i < bytes.length && i < limit && isBlank(bytes[i]!)) i++
  if (i === bytes.length) return isFinal ? i : i < limit ? 'unsettled' : undefined
  return bytes[i] === NEWLINE ? i : undefined
}

function endOfRun(bytes: Uint8Array, at: number): number {
  const mark = bytes[at]
  const end = Math.min(bytes.length, at + RUN_LIMIT)
  let i = at + 1
  while (i < end && bytes[i] === mark) i++
  return i
}
