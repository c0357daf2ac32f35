/**
 * Finds where a JSON command ends, however its text arrives, and where it stops being JSON. It checks the structure;
 * numbers, words and escapes are judged when its text is read (orc-json/decode.ts). It never goes back.
 */
import {
  BACKSLASH,
  COLON,
  COMMA,
  DOUBLE_QUOTE,
  isSpace,
  LEFT_BRACE,
  LEFT_BRACKET,
  NEWLINE,
  RIGHT_BRACE,
  RIGHT_BRACKET,
  SPACE,
} from '../ascii.ts'
import { MAX_COMMAND_TEXT } from '../codec.ts'
import type { Window } from './window.ts'

/** Deeper values are refused. */
const DEPTH_LIMIT = 32

export type ObjectOutcome =
  /** `end` is behind the last brace. */
  | 'complete'
  /** Complete, but for a line end or control character in a string, at `problemAt`. */
  | 'unescaped'
  /** It is no JSON from `end` on. */
  | 'broken'
  /** A string ended early: a quotation mark in it was not escaped. */
  | 'broken-string'
  | 'unclosed'
  | 'too-large'
  | 'unsettled'

type Phase =
  | 'value'
  | 'value-or-end'
  | 'key'
  | 'key-or-end'
  | 'colon'
  | 'comma-or-end'
  | 'string'
  | 'escape'
  | 'word'

export interface ObjectReader {
  readonly start: number
  readonly end: number
  readonly problemAt: number
  /** `at` is where the value of `orc_command` may begin. */
  begin(start: number, at: number): void
  read(isFinal: boolean): ObjectOutcome
}

export function openObjectReader(window: Window): ObjectReader {
  let start = 0
  let at = 0
  let phase: Phase = 'value'
  let isKey = false
  let isAfterString = false
  let isBlankLine = false
  let problemAt = -1
  /** The open braces and brackets, each by the byte that closes it. */
  const closers: number[] = []

  /** The phase that the byte leads to, or undefined if it may not stand here. */
  function step(byte: number): Phase | undefined {
    if (isSpace(byte)) return phase
    const closer = closers.at(-1)
    const isArray = closer === RIGHT_BRACKET
    switch (phase) {
      case 'value':
      case 'value-or-end':
        if (phase === 'value-or-end' && byte === closer) return close()
        if (byte === LEFT_BRACE) return open(RIGHT_BRACE, 'key-or-end')
        // The command itself is an object.
        if (closers.length === 1) return undefined
        if (byte === LEFT_BRACKET) return open(RIGHT_BRACKET, 'value-or-end')
        if (byte === DOUBLE_QUOTE) return string(false)
        return isWordPart(byte) ? 'word' : undefined
      case 'key':
      case 'key-or-end':
        if (phase === 'key-or-end' && byte === RIGHT_BRACE) return close()
        return byte === DOUBLE_QUOTE ? string(true) : undefined
      case 'colon':
        return byte === COLON ? 'value' : undefined
      case 'comma-or-end':
        if (byte === closer) return close()
        if (byte !== COMMA) return undefined
        return isArray ? 'value' : 'key'
      default:
        return undefined
    }
  }

  function open(closer: number, next: Phase): Phase | undefined {
    closers.push(closer)
    return closers.length > DEPTH_LIMIT ? undefined : next
  }

  function close(): Phase {
    closers.pop()
    isAfterString = false
    return 'comma-or-end'
  }

  function string(key: boolean): Phase {
    isKey = key
    isBlankLine = false
    return 'string'
  }

  function endString(): Phase {
    isAfterString = true
    return isKey ? 'colon' : 'comma-or-end'
  }

  function finish(outcome: ObjectOutcome, end: number): ObjectOutcome {
    at = window.base + end
    return outcome
  }

  function read(isFinal: boolean): ObjectOutcome {
    const { bytes, base } = window
    let i = at - base
    for (; i < bytes.length; i++) {
      if (base + i - start >= MAX_COMMAND_TEXT) return finish('too-large', i)
      const byte = bytes[i]!
      if (phase === 'string') {
        if (byte === DOUBLE_QUOTE) phase = endString()
        else if (byte === BACKSLASH) phase = 'escape'
        else if (byte < SPACE) {
          // A string may go on over a line end, to be refused as one; but not over a blank line.
          if (problemAt < 0) problemAt = base + i
          if (byte === NEWLINE && isBlankLine) return finish('unescaped', i)
          isBlankLine = byte === NEWLINE || (isBlankLine && isSpace(byte))
        } else if (byte !== SPACE) isBlankLine = false
        continue
      }
      if (phase === 'escape') {
        phase = 'string'
        continue
      }
      if (phase === 'word') {
        if (isWordPart(byte)) continue
        phase = 'comma-or-end'
        isAfterString = false
      }
      const next = step(byte)
      // The whole character is wanted, for the diagnostic.
      if (next === undefined && byte >= 0x80 && i + 4 > bytes.length && !isFinal) break
      if (next === undefined) return finish(isUnescapedQuote(byte) ? 'broken-string' : 'broken', i)
      phase = next
      if (closers.length === 0) return finish(problemAt < 0 ? 'complete' : 'unescaped', i + 1)
    }
    at = base + i
    return isFinal ? 'unclosed' : 'unsettled'
  }

  /** Text goes on behind a string: its quotation mark was meant as part of it. */
  function isUnescapedQuote(byte: number): boolean {
    return isAfterString && phase === 'comma-or-end' && (isWordPart(byte) || byte === BACKSLASH)
  }

  return {
    get start() {
      return start
    },
    get end() {
      return at
    },
    get problemAt() {
      return problemAt
    },
    begin(offset, valueAt) {
      start = offset
      at = valueAt
      phase = 'value'
      problemAt = -1
      isAfterString = false
      closers.length = 0
      closers.push(RIGHT_BRACE)
    },
    read,
  }
}

/** Numbers, true, false, null: anything that could be one, to be judged later. */
function isWordPart(byte: number): boolean {
  const letter = byte | 0x20
  return (
    (letter >= 0x61 && letter <= 0x7a) ||
    (byte >= 0x30 && byte <= 0x39) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  )
}
