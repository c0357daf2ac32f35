/** Landmarks are the places where something other than plain text may begin. */
import {
  APOSTROPHE,
  BACKTICK,
  DOUBLE_QUOTE,
  GREATER_THAN,
  LEFT_BRACE,
  LEFT_BRACKET,
  LESS_THAN,
  NEWLINE,
  SPACE,
  standsAt,
  TAB,
  TILDE,
} from '../ascii.ts'
import { PREFIX_LIMIT } from './lines.ts'

/** At most this many bytes are searched at once. */
export const BLOCK = 65_536

/** No landmark is told by more bytes than these; closer to the end of the text, it gets the benefit of the doubt. */
export const LOOK_AHEAD = 16

/** The closest landmarks are those of empty fences, four bytes apart. */
export const MOST_LANDMARKS = BLOCK / 4 + LOOK_AHEAD

/** Valid until the next search. */
export interface Landmarks {
  count: number
  /** For each landmark its distance from the start of the search, and the number of line ends between. */
  places: Int32Array
  /** The number of line ends in all that was searched. */
  lines: number
}

export type FindLandmarks = (bytes: Uint8Array, from: number, to: number) => Landmarks

/** What may follow `<`. Only these are told for certain; what follows `[` and `{` is looked at more closely later. */
export const TAGS = ['orc-command', '/orc-command', '![cdata['] as const
export const MARKERS = ['orchestr', 'orchub m'] as const

const places = new Int32Array(2 * MOST_LANDMARKS)

/** The search in plain words. What it finds need not be what it looks like: the machine takes a closer look. */
export const findLandmarksPlainly: FindLandmarks = (bytes, from, to) => {
  const visible = bytes.subarray(0, to + LOOK_AHEAD)
  let count = 0
  let lines = 0
  for (let at = from; at < to; at++) {
    if (bytes[at] === NEWLINE) lines++
    if (!isLandmark(visible, at)) continue
    places[2 * count] = at - from
    places[2 * count + 1] = lines
    count++
  }
  return { count, places, lines }
}

function isLandmark(bytes: Uint8Array, at: number): boolean {
  switch (bytes[at]) {
    case LESS_THAN:
      return isCutOff(bytes, at) || TAGS.some((word) => reads(bytes, at + 1, word))
    case LEFT_BRACKET:
      return isCutOff(bytes, at) || MARKERS.some((word) => reads(bytes, at + 1, word))
    case LEFT_BRACE:
      return startsObject(bytes, at)
    case BACKTICK:
    case TILDE:
      return startsFence(bytes, at)
    default:
      return false
  }
}

/** Whether a landmark here could reach behind the end of what can be seen. */
export function isCutOff(bytes: Uint8Array, at: number): boolean {
  return at + LOOK_AHEAD > bytes.length
}

function reads(bytes: Uint8Array, at: number, word: string): boolean {
  return standsAt(bytes, at, Buffer.from(word))
}

/** Any quotes will do: those that are none in JSON have a diagnostic of their own. */
function startsObject(bytes: Uint8Array, at: number): boolean {
  let i = at + 1
  while (i < bytes.length && bytes[i]! <= SPACE) i++
  if (isCutOff(bytes, i)) return true
  if (bytes[i] === DOUBLE_QUOTE || bytes[i] === APOSTROPHE) return reads(bytes, i + 1, 'orc_comm')
  return bytes[i] === 0xe2 && reads(bytes, i + 3, 'orc_comm')
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
