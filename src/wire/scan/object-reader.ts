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
  /** A line end or control character stands in a string, at `problemAt`; otherwise complete. */
  | 'unescaped'
  /** It is no JSON from `end` on. */
  | 'broken'
  /** The same, because a quotation mark in a string was not escaped. */
  | 'broken-string'
  | 'unclosed'
  | 'too-large'
  | 'unsettled'

const VALUE = 0
const VALUE_OR_END = 1
const KEY = 2
const KEY_OR_END = 3
const AFTER_KEY = 4
const AFTER_VALUE = 5
const STRING = 6
const ESCAPE = 7
const WORD = 8
const NOWHERE = 9

export interface ObjectReader {
  readonly start: number
  readonly end: number
  readonly problemAt: number
  /** Whether the object is the command itself, with nothing around it. */
  readonly isBare: boolean
  /** How many keys the command has, and the object around it. */
  readonly keys: number
  readonly outerKeys: number
  /** `at` is where the value of `orc_command` may begin. */
  begin(start: number, at: number): void
  /** `start` is the brace of a command with nothing around it. */
  beginBare(start: number): void
  read(isFinal: boolean): ObjectOutcome
}

export function openObjectReader(window: Window): ObjectReader {
  let phase = VALUE
  let isKey = false
  let isAfterString = false
  let isBlankLine = false
  /** The open braces and brackets, each by the byte that closes it. */
  const closers: number[] = []

  /** The phase to which a byte outside of strings and words leads: nowhere, if it may not stand here. */
  function step(byte: number): number {
    const closer = closers[closers.length - 1]
    switch (phase) {
      case VALUE_OR_END:
      case VALUE:
        if (byte === closer && phase === VALUE_OR_END) return close()
        if (byte === LEFT_BRACE) return open(RIGHT_BRACE, KEY_OR_END)
        // The command itself must be an object.
        if (closers.length === 1 && reader.outerKeys === 1 && !reader.isBare) return NOWHERE
        if (byte === LEFT_BRACKET) return open(RIGHT_BRACKET, VALUE_OR_END)
        if (byte === DOUBLE_QUOTE) return string(false)
        return isWordPart(byte) ? WORD : NOWHERE
      case KEY_OR_END:
      case KEY:
        if (byte === closer && phase === KEY_OR_END) return close()
        return byte === DOUBLE_QUOTE ? string(true) : NOWHERE
      case AFTER_KEY:
        return byte === COLON ? VALUE : NOWHERE
      case AFTER_VALUE:
        if (byte === closer) return close()
        if (byte !== COMMA) return NOWHERE
        return closer === RIGHT_BRACKET ? VALUE : KEY
      default:
        return NOWHERE
    }
  }

  function open(closer: number, next: number): number {
    closers.push(closer)
    return closers.length > DEPTH_LIMIT ? NOWHERE : next
  }

  function close(): number {
    closers.pop()
    isAfterString = false
    return AFTER_VALUE
  }

  function string(asKey: boolean): number {
    isKey = asKey
    isBlankLine = false
    if (asKey && closers.length === 1) reader.outerKeys++
    if (asKey && closers.length === 2 && reader.outerKeys === 1 && !reader.isBare) reader.keys++
    return STRING
  }

  function finish(outcome: ObjectOutcome, end: number): ObjectOutcome {
    reader.end = window.base + end
    return outcome
  }

  function read(isFinal: boolean): ObjectOutcome {
    const { bytes, base } = window
    const size = bytes.length
    const limit = reader.start + MAX_COMMAND_TEXT - base
    let i = reader.end - base
    for (; i < size; i++) {
      if (i >= limit) return finish('too-large', limit)
      const byte = bytes[i]!
      if (phase === STRING) {
        if (IS_PLAIN[byte] === 1) {
          isBlankLine = false
          do i++
          while (i < size && IS_PLAIN[bytes[i]!] === 1)
          i--
        } else if (byte === DOUBLE_QUOTE) {
          isAfterString = true
          phase = isKey ? AFTER_KEY : AFTER_VALUE
        } else if (byte === BACKSLASH) phase = ESCAPE
        else if (byte < SPACE) {
          // A string may go on over a line end, to be refused as one; but not over a blank line.
          if (reader.problemAt < 0) reader.problemAt = base + i
          if (byte === NEWLINE && isBlankLine) return finish('unescaped', i)
          isBlankLine = byte === NEWLINE || (isBlankLine && isSpace(byte))
        }
        continue
      }
      if (phase === ESCAPE) {
        phase = STRING
        continue
      }
      if (phase === WORD) {
        if (isWordPart(byte)) continue
        phase = AFTER_VALUE
        isAfterString = false
      }
      if (isSpace(byte)) continue
      const next = step(byte)
      if (next === NOWHERE) {
        // The whole character is wanted, for the diagnostic.
        if (byte >= 0x80 && i + 4 > size && !isFinal) break
        return finish(isUnescapedQuote(byte) ? 'broken-string' : 'broken', i)
      }
      phase = next
      if (closers.length === 0) return finish(reader.problemAt < 0 ? 'complete' : 'unescaped', i + 1)
    }
    reader.end = base + i
    return isFinal ? 'unclosed' : 'unsettled'
  }

  function reset(start: number, at: number) {
    reader.start = start
    reader.end = at
    reader.problemAt = -1
    reader.keys = 0
    isAfterString = false
    while (closers.length > 0) closers.pop()
    closers.push(RIGHT_BRACE)
  }

  /** Text goes on behind a string: its quotation mark was meant as part of it. */
  function isUnescapedQuote(byte: number): boolean {
    return isAfterString && phase === AFTER_VALUE && (isWordPart(byte) || byte === BACKSLASH)
  }

  const reader = {
    start: 0,
    end: 0,
    problemAt: -1,
    isBare: false,
    keys: 0,
    outerKeys: 1,
    begin(start: number, at: number) {
      reset(start, at)
      reader.isBare = false
      reader.outerKeys = 1
      phase = VALUE
    },
    beginBare(start: number) {
      reset(start, start + 1)
      reader.isBare = true
      reader.outerKeys = 0
      phase = KEY_OR_END
    },
    read,
  }
  return reader
}

/** Nothing happens within a string at bytes other than space, controls, the quotation mark and the backslash. */
const IS_PLAIN = new Uint8Array(256)
for (let byte = SPACE + 1; byte < 256; byte++)
  if (byte !== DOUBLE_QUOTE && byte !== BACKSLASH) IS_PLAIN[byte] = 1

/** Numbers, true, false, null: anything that could be one, to be judged later. */
function isWordPart(byte: number): boolean {
  const letter = byte | 0x20
  const isLetter = letter >= 0x61 && letter <= 0x7a
  return isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e
}
