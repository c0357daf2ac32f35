/** What a landmark turns out to be. `unsettled` if there are too few bytes to tell. */
import {
  APOSTROPHE,
  COLON,
  DOUBLE_QUOTE,
  GREATER_THAN,
  isBlank,
  isSpace,
  LEFT_BRACE,
  LESS_THAN,
  mayStandAt,
  NEWLINE,
  SLASH,
  standsAt,
} from '../ascii.ts'
import { CDATA, isCutOff, KEY_WORD, TAG_WORD, TYPE_KEY, WORD_MIDDLE } from './landmark.ts'

/** As much space as a closing tag or the beginning of a JSON command may hold in one place. */
const SPACE_LIMIT = 200

/** Whether the landmark is the word `orc-command` indeed. */
export function tagWord(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  return !isCutOff(bytes, at + WORD_MIDDLE) || stands(bytes, at, TAG_WORD, isFinal)
}

export function keyWord(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  return !isCutOff(bytes, at + WORD_MIDDLE) || stands(bytes, at, KEY_WORD, isFinal)
}

/** Not even a landmark that is not cut off is certain here: `<!--`, too, may be one, because of its hyphens. */
export function cdata(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  return stands(bytes, at, CDATA, isFinal)
}

/** Only what the end of the text may have cut off is not certain yet. */
function stands(bytes: Buffer, at: number, word: Buffer, isFinal: boolean): boolean | 'unsettled' {
  return standsAt(bytes, at, word) || (!isFinal && mayStandAt(bytes, at, word) ? 'unsettled' : false)
}

/** Whether what follows the name in `<orc-command` makes it an opening tag: `mention` if it cannot hold an attribute. */
export function openingTag(
  bytes: Buffer,
  nameEnd: number,
  isFinal: boolean,
): boolean | 'mention' | 'unsettled' {
  if (nameEnd + 1 >= bytes.length && !isFinal) return 'unsettled'
  const byte = bytes[nameEnd]
  if (byte === undefined) return false
  if (isSpace(byte)) return bytes[nameEnd + 1] !== LESS_THAN
  return byte === GREATER_THAN || byte === SLASH ? 'mention' : false
}

/** Where `</orc-command` ends as a closing tag. */
export function closingTag(
  bytes: Buffer,
  nameEnd: number,
  isFinal: boolean,
): number | undefined | 'unsettled' {
  const end = skipSpace(bytes, nameEnd)
  if (end === bytes.length) return isFinal ? undefined : 'unsettled'
  return bytes[end] === GREATER_THAN ? end + 1 : undefined
}

export interface ObjectHeader {
  brace: number
  /** Where the key begins, quotation mark and all. */
  key: number
  /** Where the value may begin. */
  value: number
  /** Whether the quotation marks are JSON's. */
  hasProperQuotes: boolean
}

/** The beginning of a JSON command around the word `orc_command` at `word`. */
export function objectHeader(
  bytes: Buffer,
  word: number,
  isFinal: boolean,
): ObjectHeader | undefined | 'unsettled' {
  const quote = bytes[word - 1]
  const isPlain = quote === DOUBLE_QUOTE || quote === APOSTROPHE
  // Typographic quotation marks are three bytes each, U+2018 to U+201F.
  if (!isPlain && (bytes[word - 3] !== 0xe2 || bytes[word - 2] !== 0x80)) return undefined
  const key = word - (isPlain ? 1 : 3)
  let brace = key - 1
  while (brace >= 0 && key - brace <= SPACE_LIMIT && isSpace(bytes[brace]!)) brace--
  if (bytes[brace] !== LEFT_BRACE) return undefined
  const end = word + KEY_WORD.length
  const close = end + (isPlain ? 1 : 3)
  const colon = skipSpace(bytes, close)
  if (colon >= bytes.length) return isFinal ? undefined : 'unsettled'
  if (bytes[colon] !== COLON || (isPlain && bytes[end] !== quote)) return undefined
  return { brace, key, value: colon + 1, hasProperQuotes: quote === DOUBLE_QUOTE }
}

/** The types of the seed's messages, as they are written there. */
const MESSAGE_TYPES = ['DELEGATE', 'REPORT', 'QUERY', 'ANSWER', 'REQUEST_USER_INPUT', 'USER_RESPONSE'].map(
  (type) => Buffer.from(`"${type}"`),
)

/** Space before and behind the brace of a message; both together are less than what is kept of the text. */
const MESSAGE_SPACE = 100

/**
 * The brace of a message as the seed writes it, around its first key `"type"` at `key`: it begins its line, and the type is
 * one of the seed's in capitals. So no other JSON that an agent shows is taken for one.
 */
export function messageHeader(
  bytes: Buffer,
  key: number,
  isFinal: boolean,
): { brace: number; value: number } | undefined | 'unsettled' {
  const named = stands(bytes, key, TYPE_KEY, isFinal)
  if (named !== true) return named || undefined
  let brace = key - 1
  while (brace >= 0 && key - brace <= MESSAGE_SPACE && isSpace(bytes[brace]!)) brace--
  if (bytes[brace] !== LEFT_BRACE || !beginsLine(bytes, brace)) return undefined
  const isCut = isFinal ? undefined : 'unsettled'
  const colon = skipSpace(bytes, key + TYPE_KEY.length)
  if (colon >= bytes.length) return isCut
  if (bytes[colon] !== COLON) return undefined
  const value = skipSpace(bytes, colon + 1)
  if (MESSAGE_TYPES.some((type) => overlaps(bytes, value, type))) return { brace, value }
  return MESSAGE_TYPES.some((type) => overlaps(bytes, value, type.subarray(0, bytes.length - value)))
    ? isCut
    : undefined
}

function overlaps(bytes: Buffer, at: number, word: Buffer): boolean {
  for (let i = 0; i < word.length; i++) if (bytes[at + i] !== word[i]) return false
  return true
}

function beginsLine(bytes: Buffer, at: number): boolean {
  let i = at - 1
  while (i >= 0 && at - i <= MESSAGE_SPACE && isBlank(bytes[i]!)) i--
  return i < 0 || bytes[i] === NEWLINE
}

function skipSpace(bytes: Buffer, from: number): number {
  let i = from
  while (i < bytes.length && i - from < SPACE_LIMIT && isSpace(bytes[i]!)) i++
  return i
}
