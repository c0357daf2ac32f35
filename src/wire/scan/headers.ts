/** What a landmark turns out to be. `unsettled` if there are too few bytes to tell. */
import {
  APOSTROPHE,
  COLON,
  DOUBLE_QUOTE,
  GREATER_THAN,
  isSpace,
  LESS_THAN,
  mayStandAt,
  SLASH,
  standsAt,
} from '../ascii.ts'
import { isCutOff } from './landmark.ts'

export const OPENING = Buffer.from('<orc-command')
const CLOSING = Buffer.from('</orc-command')
const CDATA = Buffer.from('<![cdata[')
const KEY = Buffer.from('"orc_command"')
const SINGLE_QUOTED_KEY = Buffer.from("'orc_command'")
const BARE_KEY = Buffer.from('orc_command')

/** As much space as a closing tag or the beginning of a JSON command may hold. */
const SPACE_LIMIT = 1024

/** Whether an opening tag begins at the landmark: `mention` if it cannot hold an attribute. */
export function openingTag(bytes: Buffer, at: number, isFinal: boolean): boolean | 'mention' | 'unsettled' {
  const next = at + OPENING.length
  if (isCutOff(bytes, at)) {
    if (!standsAt(bytes, at, OPENING)) return !isFinal && mayStandAt(bytes, at, OPENING) ? 'unsettled' : false
    if (next + 1 >= bytes.length && !isFinal) return 'unsettled'
    if (next === bytes.length) return false
  }
  const byte = bytes[next]!
  if (isSpace(byte)) return bytes[next + 1] !== LESS_THAN
  return byte === GREATER_THAN || byte === SLASH ? 'mention' : false
}

/** Where the closing tag ends that begins at the landmark. */
export function closingTag(bytes: Buffer, at: number, isFinal: boolean): number | undefined | 'unsettled' {
  if (isCutOff(bytes, at) && !standsAt(bytes, at, CLOSING)) {
    return !isFinal && mayStandAt(bytes, at, CLOSING) ? 'unsettled' : undefined
  }
  const end = skipSpace(bytes, at + CLOSING.length)
  if (end === bytes.length) return isFinal ? undefined : 'unsettled'
  return bytes[end] === GREATER_THAN ? end + 1 : undefined
}

export function cdata(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  return standsAt(bytes, at, CDATA) || (!isFinal && mayStandAt(bytes, at, CDATA) ? 'unsettled' : false)
}

/** Where the key and its value begin, if a JSON command begins here, and whether its quotes are JSON's. */
export function objectHeader(
  bytes: Buffer,
  at: number,
  isFinal: boolean,
): { key: number; value: number; hasProperQuotes: boolean } | undefined | 'unsettled' {
  const key = skipSpace(bytes, at + 1)
  const cut = isFinal ? undefined : 'unsettled'
  if (key === bytes.length) return cut
  const quoted = bytes[key] === DOUBLE_QUOTE ? KEY : bytes[key] === APOSTROPHE ? SINGLE_QUOTED_KEY : undefined
  let end: number
  if (quoted !== undefined) {
    if (!standsAt(bytes, key, quoted)) return mayStandAt(bytes, key, quoted) ? cut : undefined
    end = key + quoted.length
  } else {
    // Typographic quotation marks are three bytes each, U+2018 to U+201F.
    if (bytes[key] !== 0xe2) return undefined
    const word = key + 3
    if (!standsAt(bytes, word, BARE_KEY)) return mayStandAt(bytes, word, BARE_KEY) ? cut : undefined
    end = word + BARE_KEY.length + 3
  }
  const colon = skipSpace(bytes, end)
  if (colon >= bytes.length) return cut
  return bytes[colon] === COLON ? { key, value: colon + 1, hasProperQuotes: quoted === KEY } : undefined
}

function skipSpace(bytes: Buffer, from: number): number {
  let i = from
  while (i < bytes.length && i - from < SPACE_LIMIT && isSpace(bytes[i]!)) i++
  return i
}
