/**
 * Finds where an opening tag ends, however its text arrives: `>` and apostrophes may stand in quoted values. What the
 * tag says, or what is wrong with it, is read later from its text (orc-xml/tag.ts).
 */
import {
  APOSTROPHE,
  DOUBLE_QUOTE,
  EQUALS,
  GREATER_THAN,
  isNamePart,
  isSpace,
  LESS_THAN,
  SLASH,
} from '../ascii.ts'
import { MAX_COMMAND_TEXT } from '../codec.ts'
import { TAG_WORD } from './landmark.ts'
import { indexOfByte } from './search.ts'
import type { Window } from './window.ts'

const OPENING_LENGTH = TAG_WORD.length + 1

/** Words without a value, as in prose, are followed no further than this. */
const PROSE_LIMIT = 256

/** How far the end of a broken tag is looked for. */
const RECOVERY_LIMIT = 1024

export type TagOutcome =
  /** `end` is behind the `>`. */
  | 'open'
  | 'self-closing'
  /** It has no attribute with a value: somebody mentions the tag, perhaps together with its closing tag. */
  | 'mention'
  /** Mentioned without anything that it could enclose. */
  | 'endless-mention'
  /** Broken, and no `>` belongs to it; `end` is where it stopped making sense. */
  | 'endless'
  | 'unsettled'

const BETWEEN = 0
const NAME = 1
const AFTER_NAME = 2
const BEFORE_VALUE = 3
const VALUE = 4
const AFTER_VALUE = 5
const AFTER_SLASH = 6
const RECOVERY = 7

export interface TagReader {
  readonly start: number
  readonly end: number
  begin(start: number): void
  read(isFinal: boolean): TagOutcome
}

export function openTagReader(window: Window): TagReader {
  let phase = BETWEEN
  let quote = 0
  let valueAt = 0
  let hasValue = false
  let recoverFrom = 0

  function close(end: number): TagOutcome {
    reader.end = window.base + end
    if (!hasValue) return 'mention'
    return window.bytes[end - 2] === SLASH ? 'self-closing' : 'open'
  }

  function giveUp(end: number): TagOutcome {
    reader.end = window.base + end
    return hasValue ? 'endless' : 'endless-mention'
  }

  /** Space, and as many attributes like ` name="value"` as follow it: nearly all are, and this is quicker. */
  function readPlainAttributes(bytes: Buffer, from: number, limit: number): number {
    const size = bytes.length
    let i = from
    while (i < size && isSpace(bytes[i]!)) {
      do i++
      while (i < size && isSpace(bytes[i]!))
      const name = i
      while (i < size && isNamePart(bytes[i]!)) i++
      if (i === name) return i
      phase = i === size ? NAME : AFTER_NAME
      const opening = bytes[i + 1]
      if (bytes[i] !== EQUALS || (opening !== DOUBLE_QUOTE && opening !== APOSTROPHE)) return i
      hasValue = true
      quote = opening
      valueAt = window.base + i + 2
      phase = VALUE
      i = endOfValue(bytes, quote, i + 2)
      if (i >= size || i > limit) return i
      phase = AFTER_VALUE
      i++
      if (i === size || !endsValue(bytes[i]!)) return i
      phase = BETWEEN
    }
    return i
  }

  /** Behind a value that went wrong, the tag ends with the first `>` since that value began. */
  function recover(from: number): number {
    phase = RECOVERY
    recoverFrom = from
    return from - window.base
  }

  function read(isFinal: boolean): TagOutcome {
    const { bytes, base } = window
    const size = bytes.length
    const limit = reader.start + MAX_COMMAND_TEXT - base
    let i = reader.end - base
    for (;;) {
      if (i >= size || i > limit) {
        if (i <= limit && !isFinal) break
        if (phase === VALUE) {
          i = recover(valueAt)
          continue
        }
        return giveUp(i > limit ? reader.start + OPENING_LENGTH - base : size)
      }
      const byte = bytes[i]!
      switch (phase) {
        case BETWEEN:
          if (isSpace(byte)) i = readPlainAttributes(bytes, i, limit)
          else if (byte === GREATER_THAN) return close(i + 1)
          else if (isNamePart(byte)) phase = NAME
          else if (byte === SLASH) {
            phase = AFTER_SLASH
            i++
          } else i = recover(base + i)
          break
        case NAME:
          while (i < size && isNamePart(bytes[i]!)) i++
          if (i < size) phase = AFTER_NAME
          break
        case AFTER_NAME:
          if (isSpace(byte)) i++
          else if (byte === EQUALS) {
            hasValue = true
            phase = BEFORE_VALUE
            i++
          } else if (!hasValue && base + i - reader.start > PROSE_LIMIT) return giveUp(i)
          else phase = BETWEEN
          break
        case BEFORE_VALUE:
          if (isSpace(byte)) i++
          else if (byte === DOUBLE_QUOTE || byte === APOSTROPHE) {
            quote = byte
            phase = VALUE
            i++
            valueAt = base + i
          } else i = recover(base + i)
          break
        case VALUE:
          i = endOfValue(bytes, quote, i)
          if (i < size && i <= limit) {
            phase = AFTER_VALUE
            i++
          }
          break
        case AFTER_VALUE:
          if (endsValue(byte)) phase = BETWEEN
          else i = recover(valueAt)
          break
        case AFTER_SLASH:
          if (isSpace(byte)) i++
          else if (byte === GREATER_THAN) {
            reader.end = base + i + 1
            return hasValue ? 'self-closing' : 'endless-mention'
          } else i = recover(base + i)
          break
        case RECOVERY:
          if (byte === GREATER_THAN) return close(i + 1)
          if (byte === LESS_THAN || base + i - recoverFrom > RECOVERY_LIMIT) return giveUp(i)
          i++
          break
      }
    }
    reader.end = base + i
    return 'unsettled'
  }

  const reader = {
    start: 0,
    end: 0,
    begin(start: number) {
      reader.start = start
      reader.end = start + OPENING_LENGTH
      phase = BETWEEN
      hasValue = false
    },
    read,
  }
  return reader
}

function endsValue(byte: number): boolean {
  return isSpace(byte) || byte === GREATER_THAN || byte === SLASH
}

function endOfValue(bytes: Buffer, quote: number, from: number): number {
  const found = indexOfByte(bytes, quote, from)
  return found < 0 ? bytes.length : found
}
