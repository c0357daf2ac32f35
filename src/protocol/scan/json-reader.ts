/**
 * Finds the end of a JSON command in text that arrives in pieces, or the byte at which it stops being JSON. It checks the
 * structure only; json/decode.ts checks numbers, words and escapes once all of the text is there.
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
import type { TextWindow } from './window.ts'

/** Values may be nested this deep. */
const DEPTH_LIMIT = 32

export type JsonOutcome =
  /** `end` is after the last brace. */
  | 'complete'
  /** Complete, but a string contains a line end or a control character at `problemAt`. */
  | 'unescaped'
  /** The text is not JSON from `end` on. */
  | 'broken'
  /** The text is not JSON from `end` on, because a quotation mark in a string is not escaped. */
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
const INVALID = 9

interface JsonReader {
  readonly start: number
  readonly end: number
  readonly problemAt: number
  /** Whether the object is the command itself, without `orc_command` around it. */
  readonly isMessage: boolean
  /** Number of keys in the command. Unused for messages. */
  readonly keys: number
  /** Number of keys in the outermost object. */
  readonly outerKeys: number
  /** `at` is the offset at which the value of `orc_command` may begin. */
  beginWrapped(start: number, at: number): void
  /** `start` is the offset of the message's brace. */
  beginMessage(start: number): void
  read(isFinal: boolean): JsonOutcome
}

export function openJsonReader(window: TextWindow): JsonReader {
  let phase = VALUE
  let isKey = false
  let isAfterString = false
  let isBlankLine = false
  /** The bytes that close the open braces and brackets. */
  const closers: number[] = []

  /** The phase after a byte outside of strings and words; INVALID if the byte cannot stand here. */
  function step(byte: number): number {
    const closer = closers[closers.length - 1]
    switch (phase) {
      case VALUE_OR_END:
      case VALUE:
        if (byte === closer && phase === VALUE_OR_END) return close()
        if (byte === LEFT_BRACE) return open(RIGHT_BRACE, KEY_OR_END)
        // The command itself must be an object.
        if (closers.length === 1 && reader.outerKeys === 1 && !reader.isMessage) return INVALID
        if (byte === LEFT_BRACKET) return open(RIGHT_BRACKET, VALUE_OR_END)
        if (byte === DOUBLE_QUOTE) return string(false)
        return isWordPart(byte) ? WORD : INVALID
      case KEY_OR_END:
      case KEY:
        if (byte === closer && phase === KEY_OR_END) return close()
        return byte === DOUBLE_QUOTE ? string(true) : INVALID
      case AFTER_KEY:
        return byte === COLON ? VALUE : INVALID
      case AFTER_VALUE:
        if (byte === closer) return close()
        if (byte !== COMMA) return INVALID
        return closer === RIGHT_BRACKET ? VALUE : KEY
      default:
        return INVALID
    }
  }

  function open(closer: number, next: number): number {
    closers.push(closer)
    return closers.length > DEPTH_LIMIT ? INVALID : next
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
    if (asKey && closers.length === 2 && reader.outerKeys === 1 && !reader.isMessage) reader.keys++
    return STRING
  }

  function finish(outcome: JsonOutcome, end: number): JsonOutcome {
    reader.end = window.base + end
    return outcome
  }

  function read(isFinal: boolean): JsonOutcome {
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
          // A string with a line end in it is read to its end and then refused, unless it contains a blank line.
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
      if (next === INVALID) {
        // The diagnostic quotes the whole character.
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

  /** Text directly after a string shows that its closing quotation mark was meant as part of it. */
  function isUnescapedQuote(byte: number): boolean {
    return isAfterString && phase === AFTER_VALUE && (isWordPart(byte) || byte === BACKSLASH)
  }

  const reader = {
    start: 0,
    end: 0,
    problemAt: -1,
    isMessage: false,
    keys: 0,
    outerKeys: 1,
    beginWrapped(start: number, at: number) {
      reset(start, at)
      reader.isMessage = false
      reader.outerKeys = 1
      phase = VALUE
    },
    beginMessage(start: number) {
      reset(start, start + 1)
      reader.isMessage = true
      reader.outerKeys = 0
      phase = KEY_OR_END
    },
    read,
  }
  return reader
}

/** Bytes in a string that need no check: all but space, controls, the quotation mark and the backslash. */
const IS_PLAIN = new Uint8Array(256)
for (let byte = SPACE + 1; byte < 256; byte++)
  if (byte !== DOUBLE_QUOTE && byte !== BACKSLASH) IS_PLAIN[byte] = 1

/** Whether the byte may be part of a number, true, false or null. */
function isWordPart(byte: number): boolean {
  const letter = byte | 0x20
  const isLetter = letter >= 0x61 && letter <= 0x7a
  return isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x2b || byte === 0x2d || byte === 0x2e
}
