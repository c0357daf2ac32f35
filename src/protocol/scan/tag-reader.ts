/**
 * Finds the end of an opening tag in text that arrives in pieces; `>` may stand in quoted values. xml/tag.ts parses the
 * attributes and explains broken tags, once all of the tag is there.
 *
 * Phases: between attributes → name → after-name → before-value → value → after-value → between. A `/` leads from
 * between to after-slash. Anything unexpected leads to recovery, which ends the tag at the next `>`.
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
import { TAG_NAME } from './command-starts.ts'
import type { TextWindow } from './window.ts'

const OPENING_LENGTH = TAG_NAME.length + 1

/** A tag that has had no value for this many bytes is prose about the tag. */
const PROSE_LIMIT = 256

/** The end of a broken tag must be within this many bytes. */
const RECOVERY_LIMIT = 1024

type TagOutcome =
  /** `end` is after the `>`. */
  | 'open'
  | 'self-closing'
  /** No attribute has a value: the text mentions the tag, perhaps with its closing tag. */
  | 'mention'
  /** A mention that cannot enclose anything. */
  | 'endless-mention'
  /** The tag is broken and no `>` belongs to it; `end` is the first byte that cannot belong to it. */
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

interface TagReader {
  readonly start: number
  readonly end: number
  begin(start: number): void
  read(isFinal: boolean): TagOutcome
}

export function openTagReader(window: TextWindow): TagReader {
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

  /** A broken tag ends with the first `>` after the beginning of the broken value. */
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
          if (isSpace(byte)) i++
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
          while (i < size && bytes[i] !== quote) i++
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
