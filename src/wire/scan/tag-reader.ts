/**
 * Finds where an opening tag ends, however its text arrives: `>` and apostrophes may stand in quoted values. What the
 * tag says, or what is wrong with it, is read later from its text (orc-xml/tag.ts).
 */
import { APOSTROPHE, DOUBLE_QUOTE, EQUALS, GREATER_THAN, isSpace, LESS_THAN, SLASH } from '../ascii.ts'
import { MAX_COMMAND_TEXT } from '../codec.ts'
import { OPENING } from './headers.ts'
import type { Window } from './window.ts'

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

type Phase =
  | 'between'
  | 'name'
  | 'after-name'
  | 'before-value'
  | 'value'
  | 'after-value'
  | 'slash'
  | 'recovery'

export interface TagReader {
  readonly start: number
  readonly end: number
  begin(start: number): void
  read(isFinal: boolean): TagOutcome
}

export function openTagReader(window: Window): TagReader {
  let start = 0
  let at = 0
  let phase: Phase = 'between'
  let quote = 0
  let valueAt = 0
  let hasValue = false
  let isProse = false
  let recoverFrom = 0

  /** Behind a value that went wrong, the tag ends with the first `>` since that value began. */
  function recover(from: number) {
    phase = 'recovery'
    recoverFrom = from
    return from - window.base
  }

  function close(end: number): TagOutcome {
    at = window.base + end
    if (!hasValue) return 'mention'
    return window.bytes[end - 2] === SLASH ? 'self-closing' : 'open'
  }

  function giveUp(end: number): TagOutcome {
    at = window.base + end
    return hasValue ? 'endless' : 'endless-mention'
  }

  function read(isFinal: boolean): TagOutcome {
    const { bytes, base } = window
    const size = bytes.length
    let i = at - base
    for (;;) {
      const isOver = base + i - start > MAX_COMMAND_TEXT
      if (i >= size || isOver) {
        if (!isFinal && !isOver) break
        if (phase === 'value') {
          i = recover(valueAt)
          continue
        }
        return giveUp(isOver ? start + OPENING.length - base : size)
      }
      const byte = bytes[i]!
      switch (phase) {
        case 'between':
          if (isSpace(byte)) i++
          else if (byte === GREATER_THAN) return close(i + 1)
          else if (isNamePart(byte)) phase = 'name'
          else if (byte === SLASH) {
            phase = 'slash'
            i++
          } else i = recover(base + i)
          break
        case 'name':
          while (i < size && isNamePart(bytes[i]!)) i++
          if (i < size) phase = 'after-name'
          if (isProse && !hasValue && base + i - start > PROSE_LIMIT) return giveUp(i)
          break
        case 'after-name':
          if (isSpace(byte)) i++
          else if (byte === EQUALS) {
            hasValue = true
            phase = 'before-value'
            i++
          } else {
            isProse = true
            phase = 'between'
          }
          break
        case 'before-value':
          if (isSpace(byte)) i++
          else if (byte === DOUBLE_QUOTE || byte === APOSTROPHE) {
            quote = byte
            valueAt = base + i + 1
            phase = 'value'
            i++
          } else i = recover(base + i)
          break
        case 'value':
          i = find(bytes, quote, i)
          if (i < size && base + i - start <= MAX_COMMAND_TEXT) {
            phase = 'after-value'
            i++
          }
          break
        case 'after-value':
          if (isSpace(byte) || byte === GREATER_THAN || byte === SLASH) phase = 'between'
          else i = recover(valueAt)
          break
        case 'slash':
          if (isSpace(byte)) i++
          else if (byte === GREATER_THAN) {
            at = base + i + 1
            return hasValue ? 'self-closing' : 'endless-mention'
          } else i = recover(base + i)
          break
        case 'recovery':
          if (byte === GREATER_THAN) return close(i + 1)
          if (byte === LESS_THAN || base + i - recoverFrom > RECOVERY_LIMIT) return giveUp(i)
          i++
          break
      }
    }
    at = base + i
    return 'unsettled'
  }

  return {
    get start() {
      return start
    },
    get end() {
      return at
    },
    begin(offset) {
      start = offset
      at = offset + OPENING.length
      phase = 'between'
      hasValue = false
      isProse = false
    },
    read,
  }
}

function isNamePart(byte: number): boolean {
  return (
    !isSpace(byte) &&
    byte !== EQUALS &&
    byte !== GREATER_THAN &&
    byte !== LESS_THAN &&
    byte !== SLASH &&
    byte !== DOUBLE_QUOTE &&
    byte !== APOSTROPHE
  )
}

/** Most values are short: a native search only pays behind them. Returns the length if there is none. */
function find(bytes: Buffer, byte: number, from: number): number {
  const near = Math.min(bytes.length, from + 32)
  for (let i = from; i < near; i++) if (bytes[i] === byte) return i
  if (near === bytes.length) return near
  const found = bytes.indexOf(byte, near)
  return found < 0 ? bytes.length : found
}
