/** The bytes with a meaning in agent text. All are ASCII, so none of them occurs inside a multi-byte UTF-8 sequence. */
export const TAB = 0x09
export const NEWLINE = 0x0a
const RETURN = 0x0d
export const SPACE = 0x20
export const EXCLAMATION_MARK = 0x21
export const DOUBLE_QUOTE = 0x22
export const HASH = 0x23
export const APOSTROPHE = 0x27
export const RIGHT_PARENTHESIS = 0x29
export const ASTERISK = 0x2a
export const PLUS = 0x2b
export const COMMA = 0x2c
export const HYPHEN = 0x2d
export const FULL_STOP = 0x2e
export const SLASH = 0x2f
export const COLON = 0x3a
export const LESS_THAN = 0x3c
export const EQUALS = 0x3d
export const GREATER_THAN = 0x3e
export const LEFT_BRACKET = 0x5b
export const BACKSLASH = 0x5c
export const RIGHT_BRACKET = 0x5d
export const BACKTICK = 0x60
export const LEFT_BRACE = 0x7b
export const RIGHT_BRACE = 0x7d
export const TILDE = 0x7e

export function isBlank(byte: number): boolean {
  return byte === SPACE || byte === TAB || byte === RETURN
}

export function isSpace(byte: number): boolean {
  return byte === SPACE || (byte >= TAB && byte <= RETURN)
}

export function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

/** A lookup table, because every byte of every tag is checked. */
const ENDS_NAME = new Uint8Array(128)
for (let byte = 0; byte < 128; byte++) if (isSpace(byte)) ENDS_NAME[byte] = 1
for (const byte of [EQUALS, GREATER_THAN, LESS_THAN, SLASH, DOUBLE_QUOTE, APOSTROPHE]) ENDS_NAME[byte] = 1

/** Whether the byte or UTF-16 code unit may be part of an attribute's name. */
export function isNamePart(byte: number): boolean {
  return byte >= 128 || ENDS_NAME[byte] === 0
}
