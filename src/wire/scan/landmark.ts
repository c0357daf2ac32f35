/** Landmarks are the places where something other than plain text may begin, told by their rarest bytes. */
import {
  BACKTICK,
  DOUBLE_QUOTE,
  GREATER_THAN,
  HYPHEN,
  LEFT_BRACKET,
  NEWLINE,
  SPACE,
  standsAt,
  TAB,
  TILDE,
} from '../ascii.ts'
import { PREFIX_LIMIT } from './lines.ts'

/** At most this many bytes are searched at once. */
export const BLOCK = 65_536

/** No landmark needs more bytes than these behind the one that tells it; at the end of the text it may be cut off. */
export const LOOK_AHEAD = 8

/** The closest landmarks are those of empty fences, four bytes apart. */
export const MOST_LANDMARKS = BLOCK / 4 + LOOK_AHEAD

/** In tags and in JSON, told by the hyphen and the underscore between two letters that are seldom there. */
export const TAG_WORD = Buffer.from('orc-command')
export const KEY_WORD = Buffer.from('orc_command')
/** The key with which a message of the seed begins, told by its quotation mark before a `t`. */
export const TYPE_KEY = Buffer.from('"type"')
/** Told by the first bracket. */
export const CDATA = Buffer.from('<![cdata[')
export const CDATA_END = Buffer.from(']]>')
/** How far the telling byte is from the beginning of these. */
export const WORD_MIDDLE = 3
export const CDATA_MIDDLE = 2
/** How the service's own markers go on behind the bracket that tells them. */
export const MARKERS = [Buffer.from('orchest'), Buffer.from('orchub ')]

/** Valid until the next search. */
export interface Landmarks {
  count: number
  /**
   * For each landmark its distance from the start of the search, less than 0 if only the byte that tells it comes after
   * that; and the number of line ends up to it.
   */
  places: Int32Array
  /** The number of line ends in all that was searched. */
  lines: number
}

export type FindLandmarks = (bytes: Uint8Array, from: number, to: number) => Landmarks

const UNDERSCORE = 0x5f
const EXCLAMATION_MARK = 0x21
const places = new Int32Array(2 * MOST_LANDMARKS)

/** The search in plain words. What it finds need not be what it looks like: the machine takes a closer look. */
export const findLandmarksPlainly: FindLandmarks = (bytes, from, to) => {
  const visible = bytes.subarray(0, to + LOOK_AHEAD)
  let count = 0
  let lines = 0
  for (let at = from; at < to; at++) {
    if (bytes[at] === NEWLINE) lines++
    const start = landmarkAround(visible, at)
    if (start === undefined) continue
    places[2 * count] = start - from
    places[2 * count + 1] = lines
    count++
  }
  return { count, places, lines }
}

/** Where the landmark begins that the byte at `at` tells. */
function landmarkAround(bytes: Uint8Array, at: number): number | undefined {
  switch (bytes[at]) {
    case HYPHEN:
    case UNDERSCORE: {
      const word = bytes[at] === HYPHEN ? TAG_WORD : KEY_WORD
      return isCutOff(bytes, at) || standsAt(bytes, at - WORD_MIDDLE, word) ? at - WORD_MIDDLE : undefined
    }
    case LEFT_BRACKET: {
      const isCdata = bytes[at - 1] === EXCLAMATION_MARK
      const start = isCdata ? at - CDATA_MIDDLE : at
      const stands = isCdata
        ? standsAt(bytes, start, CDATA)
        : MARKERS.some((word) => standsAt(bytes, at + 1, word))
      return stands || isCutOff(bytes, at) ? start : undefined
    }
    case DOUBLE_QUOTE:
      return isCutOff(bytes, at) || (bytes[at + 1] === TYPE_KEY[1] && standsAt(bytes, at, TYPE_KEY))
        ? at
        : undefined
    case BACKTICK:
    case TILDE:
      return startsFence(bytes, at) ? at : undefined
    default:
      return undefined
  }
}

/** Whether a landmark told by the byte here could reach behind the end of what can be seen. */
export function isCutOff(bytes: Uint8Array, at: number): boolean {
  return at + LOOK_AHEAD > bytes.length
}

function startsFence(bytes: Uint8Array, at: number): boolean {
  const mark = bytes[at]
  for (let i = at + 1; i < at + 3 && i < bytes.length; i++) if (bytes[i] !== mark) return false
  let start = at
  while (start > 0 && bytes[start - 1] !== NEWLINE) {
    if (at - start === PREFIX_LIMIT || !mayPrecedeFence(bytes[start - 1]!)) return false
    start--
  }
  return true
}

/** Space, quote marks, list markers; and `,` and `/`, which do no harm here. */
function mayPrecedeFence(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === GREATER_THAN || (byte >= 0x29 && byte <= 0x39)
}
