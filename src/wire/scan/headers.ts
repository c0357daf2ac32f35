/** What a landmark turns out to be. `unsettled` if there are too few bytes to tell. */
import {
  APOSTROPHE,
  COLON,
  DOUBLE_QUOTE,
  GREATER_THAN,
  isSpace,
  LEFT_BRACE,
  LESS_THAN,
  mayStandAt,
  SLASH,
  standsAt,
} from '../ascii.ts'
import { CDATA, isCutOff, KEY_WORD, TAG_WORD, WORD_MIDDLE } from './landmark.ts'

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

function skipSpace(bytes: Buffer, from: number): number {
  let i = from
  while (i < bytes.length && i - from < SPACE_LIMIT && isSpace(bytes[i]!)) i++
  return i
}
