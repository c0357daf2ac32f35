/**
 * Recognizes the characters that begin or end a command. `unsettled` means that the text ends too early to decide, and
 * more input may follow.
 */
import {
  APOSTROPHE,
  COLON,
  DOUBLE_QUOTE,
  GREATER_THAN,
  isBlank,
  isSpace,
  LESS_THAN,
  NEWLINE,
  SLASH,
} from '../ascii.ts'

export const TAG_NAME = Buffer.from('orc-command')
const WRAPPER_KEY = Buffer.from('orc_command')
const TYPE_KEY = Buffer.from('"type"')
const CDATA = Buffer.from('<![cdata[')
export const CDATA_LENGTH = CDATA.length

/** The most space that a closing tag or the beginning of a JSON command may hold in one place. */
const SPACE_LIMIT = 200

/** The most space on either side of a message's brace. Both sides together stay below what the window keeps. */
const MESSAGE_SPACE_LIMIT = 100

export function isTagName(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  return wordStands(bytes, at, TAG_NAME, isFinal)
}

export function isCdata(bytes: Buffer, at: number, isFinal: boolean): boolean | 'unsettled' {
  return wordStands(bytes, at, CDATA, isFinal)
}

/** Whether the bytes after `<orc-command` make it an opening tag. A `mention` cannot hold an attribute. */
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

/** The offset after the closing tag whose name ends at `nameEnd`. */
export function closingTag(
  bytes: Buffer,
  nameEnd: number,
  isFinal: boolean,
): number | undefined | 'unsettled' {
  const end = skipSpace(bytes, nameEnd, SPACE_LIMIT)
  if (end === bytes.length) return isFinal ? undefined : 'unsettled'
  return bytes[end] === GREATER_THAN ? end + 1 : undefined
}

interface ObjectStart {
  /** `wrapped`: `{"orc_command": …`. `message`: `{"type": "REPORT", …`, the command without a wrapper. */
  form: 'wrapped' | 'message'
  /** Offset of the key's opening quotation mark. */
  key: number
  /** Offset at which the value may begin. */
  value: number
  /** False if the key is in single or typographic quotation marks. */
  hasJsonQuotes: boolean
}

/** The beginning of a JSON command whose brace is at `brace`. */
export function objectStart(
  bytes: Buffer,
  brace: number,
  isFinal: boolean,
): ObjectStart | undefined | 'unsettled' {
  const key = skipSpace(bytes, brace + 1, SPACE_LIMIT)
  const quoteLength = lengthOfQuote(bytes, key, isFinal)
  if (quoteLength === 'unsettled') return 'unsettled'
  if (quoteLength === 0) return undefined
  const isWrapped = wordStands(bytes, key + quoteLength, WRAPPER_KEY, isFinal)
  if (isWrapped === 'unsettled') return 'unsettled'
  return isWrapped ? wrappedStart(bytes, key, quoteLength, isFinal) : messageStart(bytes, brace, key, isFinal)
}

/** Typographic quotation marks (U+2018 to U+201F) are three bytes long in UTF-8. */
function lengthOfQuote(bytes: Buffer, at: number, isFinal: boolean): 0 | 1 | 3 | 'unsettled' {
  const byte = bytes[at]
  if (byte === DOUBLE_QUOTE || byte === APOSTROPHE) return 1
  if (byte !== undefined && byte !== 0xe2) return 0
  if (at + 3 > bytes.length) return isFinal ? 0 : 'unsettled'
  return bytes[at + 1] === 0x80 && bytes[at + 2]! >= 0x80 ? 3 : 0
}

function wrappedStart(
  bytes: Buffer,
  key: number,
  quoteLength: 1 | 3,
  isFinal: boolean,
): ObjectStart | undefined | 'unsettled' {
  const quote = bytes[key]
  const keyEnd = key + quoteLength + WRAPPER_KEY.length
  const colon = skipSpace(bytes, keyEnd + quoteLength, SPACE_LIMIT)
  if (colon >= bytes.length) return isFinal ? undefined : 'unsettled'
  if (bytes[colon] !== COLON || (quoteLength === 1 && bytes[keyEnd] !== quote)) return undefined
  return { form: 'wrapped', key, value: colon + 1, hasJsonQuotes: quote === DOUBLE_QUOTE }
}

const MESSAGE_TYPES = ['DELEGATE', 'REPORT', 'QUERY', 'ANSWER', 'REQUEST_USER_INPUT', 'USER_RESPONSE'].map(
  (type) => Buffer.from(`"${type}"`),
)

/**
 * A message counts only if its brace begins the line and its type is one of the six, in capitals. Agents show other
 * JSON all the time, and that must stay text.
 */
function messageStart(
  bytes: Buffer,
  brace: number,
  key: number,
  isFinal: boolean,
): ObjectStart | undefined | 'unsettled' {
  if (key - brace > MESSAGE_SPACE_LIMIT + 1 || !beginsLine(bytes, brace)) return undefined
  const isCut = isFinal ? undefined : 'unsettled'
  const seen = commonLength(bytes, key, TYPE_KEY)
  if (seen < TYPE_KEY.length) return key + seen === bytes.length ? isCut : undefined
  const colon = skipSpace(bytes, key + TYPE_KEY.length, SPACE_LIMIT)
  if (colon >= bytes.length) return isCut
  if (bytes[colon] !== COLON) return undefined
  const value = skipSpace(bytes, colon + 1, SPACE_LIMIT)
  for (const type of MESSAGE_TYPES) {
    const length = commonLength(bytes, value, type)
    if (length === type.length) return { form: 'message', key, value, hasJsonQuotes: true }
    if (value + length === bytes.length) return isCut
  }
  return undefined
}

function beginsLine(bytes: Buffer, at: number): boolean {
  let i = at - 1
  while (i >= 0 && at - i <= MESSAGE_SPACE_LIMIT && isBlank(bytes[i]!)) i--
  return i < 0 || bytes[i] === NEWLINE
}

function skipSpace(bytes: Buffer, from: number, limit: number): number {
  let i = from
  while (i < bytes.length && i - from < limit && isSpace(bytes[i]!)) i++
  return i
}

/** The number of bytes at `at` that agree with the beginning of `word`. */
export function commonLength(bytes: Buffer, at: number, word: Buffer): number {
  let i = 0
  while (i < word.length && bytes[at + i] === word[i]) i++
  return i
}

/** Whether `word`, given in lower case, stands at `at` in any case. */
function wordStands(bytes: Buffer, at: number, word: Buffer, isFinal: boolean): boolean | 'unsettled' {
  for (let i = 0; i < word.length; i++) {
    const byte = bytes[at + i]
    if (byte === undefined) return isFinal ? false : 'unsettled'
    const wanted = word[i]!
    if (byte !== wanted && !(byte >= 0x41 && byte <= 0x5a && byte + 0x20 === wanted)) return false
  }
  return true
}
