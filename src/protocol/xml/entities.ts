/** Decodes character references: the five of XML, also in capitals, and numeric ones. Any other `&` is text. */
import { HASH } from '../ascii.ts'

const NAMES = Object.entries({ lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }).flatMap(
  ([name, character]) =>
    [name, name.toUpperCase()].map((written) => ({ written, code: character.charCodeAt(0) })),
)
const AMPERSAND = 0x26
const SEMICOLON = 0x3b
const MOST_DIGITS = 8
const LONGEST = '&#x'.length + MOST_DIGITS
const NONE = -1

/** Copies UTF-16 code units, so that a text full of references takes about as long as one with a few. */
export function decodeReferences(text: string): string {
  if (!text.includes('&')) return text
  const decoded = Buffer.allocUnsafe(2 * text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    const end = unit === AMPERSAND ? endOfReference(text, at) : NONE
    const code = end === NONE ? NONE : codeOf(text, at + 1, end)
    if (code === NONE) length = put(decoded, length, unit)
    else {
      if (code > 0xffff) length = put(decoded, length, 0xd7c0 + (code >> 10))
      length = put(decoded, length, code > 0xffff ? 0xdc00 + (code & 0x3ff) : code)
      at = end
    }
  }
  return decoded.toString('utf16le', 0, length)
}

function put(decoded: Buffer, at: number, unit: number): number {
  decoded[at] = unit & 0xff
  decoded[at + 1] = unit >> 8
  return at + 2
}

/** The offset of the reference's semicolon. */
function endOfReference(text: string, at: number): number {
  for (let i = at + 1; i <= at + LONGEST && i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === SEMICOLON) return i
    if (code !== HASH && digitOf(code) === NONE) return NONE
  }
  return NONE
}

/** The code point of the text between the ampersand and the semicolon. */
function codeOf(text: string, from: number, to: number): number {
  if (text.charCodeAt(from) === HASH) return numberOf(text, from + 1, to)
  for (const { written, code } of NAMES)
    if (written.length === to - from && text.startsWith(written, from)) return code
  return NONE
}

function numberOf(text: string, from: number, to: number): number {
  const isHexadecimal = (text.charCodeAt(from) | 0x20) === 0x78
  const base = isHexadecimal ? 16 : 10
  const first = isHexadecimal ? from + 1 : from
  if (first === to || to - first > MOST_DIGITS) return NONE
  let number = 0
  for (let i = first; i < to; i++) {
    const digit = digitOf(text.charCodeAt(i))
    if (digit === NONE || digit >= base) return NONE
    number = number * base + digit
  }
  return isScalar(number) ? number : NONE
}

/** The value of a digit or letter, as in base 36. */
function digitOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const letter = code | 0x20
  return letter >= 0x61 && letter <= 0x7a ? letter - 0x61 + 10 : NONE
}

function isScalar(code: number): boolean {
  return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
}
