/** Landmarks are the places where something other than plain text may begin. */
import {
  APOSTROPHE,
  BACKTICK,
  DOUBLE_QUOTE,
  LEFT_BRACE,
  LEFT_BRACKET,
  LESS_THAN,
  NEWLINE,
  SPACE,
  TILDE,
} from '../ascii.ts'

/** At most this many bytes are searched at once. */
export const BLOCK = 65_536

/** A landmark may be told from its first byte and two more; the callers see to it that they are there. */
export const LOOK_AHEAD = 2

/** Valid until the next search. */
export interface Landmarks {
  count: number
  /** For each landmark its distance from the start of the search, and the number of line ends between. */
  places: Uint32Array
  /** The number of line ends in all that was searched. */
  lines: number
}

export type FindLandmarks = (bytes: Uint8Array, from: number, to: number) => Landmarks

/** `<or` `</o` `<![` `{"o` (with space between) ` ``` ` `~~~` `[OR`; letters in either case, but for the last. */
function isLandmark(bytes: Uint8Array, at: number, end: number): boolean {
  const first = bytes[at]!
  const second = at + 1 < end ? bytes[at + 1]! : 0
  const third = at + 2 < end ? bytes[at + 2]! : 0
  switch (first) {
    case LESS_THAN: {
      const pair = pairOf(second | 0x20, third | 0x20)
      return pair === pairOf(0x6f, 0x72) || pair === pairOf(0x2f, 0x6f) || pair === pairOf(0x21, 0x7b)
    }
    case LEFT_BRACE:
      return startsObject(bytes, at + 1, end)
    case LEFT_BRACKET:
      return second === 0x4f && third === 0x52
    case BACKTICK:
    case TILDE:
      return second === first && third === first && (at === 0 || bytes[at - 1] !== first)
    default:
      return false
  }
}

function pairOf(second: number, third: number): number {
  return second | (third << 8)
}

/** Any quotes will do: those that are none in JSON have a diagnostic of their own. */
function startsObject(bytes: Uint8Array, from: number, end: number): boolean {
  let i = from
  while (i < end && bytes[i]! <= SPACE) i++
  if (i >= end - 1) return true
  const quote = bytes[i]!
  const next = bytes[i + 1]!
  if (quote === 0xe2) return next === 0x80
  return (quote === DOUBLE_QUOTE || quote === APOSTROPHE) && (next | 0x20) === 0x6f
}

/** No two landmarks are closer than three bytes, but for a brace that the look-ahead cuts off. */
export const MOST_LANDMARKS = Math.ceil(BLOCK / 3) + 2

const places = new Uint32Array(2 * MOST_LANDMARKS)

export const findLandmarksPlainly: FindLandmarks = (bytes, from, to) => {
  const end = Math.min(bytes.length, to + LOOK_AHEAD)
  let count = 0
  let lines = 0
  for (let at = from; at < to; at++) {
    if (bytes[at] === NEWLINE) lines++
    if (!isLandmark(bytes, at, end)) continue
    places[2 * count] = at - from
    places[2 * count + 1] = lines
    count++
  }
  return { count, places, lines }
}
