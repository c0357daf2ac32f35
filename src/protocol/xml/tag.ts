/** Parses the attributes of an opening tag, or explains what is wrong with it. scan/tag-reader.ts found its end. */
import { EQUALS, GREATER_THAN, isNamePart, isSpace, SLASH } from '../ascii.ts'
import { brief, type Decoded, duplicateName, type ScanFailure, scanProblem } from '../codec.ts'

export interface Attribute {
  /** The name as written; `key` is the name in lower case. */
  name: string
  key: string
  value: string
}

const NAME_LENGTH = '<orc-command'.length
const MOST_ATTRIBUTES = 64
const TYPOGRAPHIC_QUOTE = /[\u2018-\u201F\u2032\u2033\u2039\u203A\u00AB\u00BB\u300C-\u300F\uFF02\uFF07]/

export function parseTag(text: string): Decoded<Attribute[]> {
  const attributes: Attribute[] = []
  let at = skipSpace(text, NAME_LENGTH)
  for (; at < text.length; at = skipSpace(text, at)) {
    if (isEnd(text, at)) return { ok: true, value: attributes }
    const nameEnd = skipName(text, at)
    const name = text.slice(at, nameEnd)
    const equals = skipSpace(text, nameEnd)
    if (name === '' || text.charCodeAt(equals) !== EQUALS) return explainName(name, text.slice(at))
    at = skipSpace(text, equals + 1)
    const quote = text[at]
    if (quote !== '"' && quote !== "'") return unquoted(name, text.slice(at))
    const end = text.indexOf(quote, at + 1)
    if (end < 0) return unclosed(name, quote, text.slice(at + 1))
    const value = text.slice(at + 1, end)
    at = end + 1
    if (at < text.length && !endsValue(text.charCodeAt(at))) return runsOn(name, quote, value)
    const key = name.toLowerCase()
    for (const other of attributes) if (other.key === key) return duplicateName(name)
    if (attributes.length === MOST_ATTRIBUTES) return tooMany()
    attributes.push({ name, key, value: decodeReferences(value) })
  }
  return notWellFormed(
    'it does not end',
    'End the opening tag with ">", or with "/>" if there is no body, before anything else.',
  )
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text.charCodeAt(at))) at++
  return at
}

function skipName(text: string, from: number): number {
  let at = from
  while (at < text.length && isNamePart(text.charCodeAt(at))) at++
  return at
}

function endsValue(code: number): boolean {
  return isSpace(code) || code === GREATER_THAN || code === SLASH
}

function isEnd(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return (
    code === GREATER_THAN || (code === SLASH && text.charCodeAt(skipSpace(text, at + 1)) === GREATER_THAN)
  )
}

/** Explains a tag that has no name where one is expected, or a name without a value. */
function explainName(name: string, rest: string): ScanFailure {
  if (name !== '') return withoutValue(name)
  if (rest[0] !== '/') return strayCharacter(rest[0]!)
  return notWellFormed('there is a stray "/" in it', 'Write "/" only at the end, as in <orc-command … />.')
}

function notWellFormed(what: string, hint: string): ScanFailure {
  return scanProblem('NOT_WELL_FORMED', `The tag <orc-command> is not well-formed: ${what}`, hint)
}

function strayCharacter(character: string): ScanFailure {
  if (character === '=') {
    return notWellFormed('there is an "=" without a name before it', 'Write attributes as name="value".')
  }
  return scanProblem(
    'MISMATCHED_QUOTES',
    `There is a stray ${character} in the tag <orc-command>`,
    'Open and close each value with the same quotation mark, as in title="…".',
  )
}

function withoutValue(name: string): ScanFailure {
  if (TYPOGRAPHIC_QUOTE.test(name)) return typographic(name)
  return notWellFormed(
    `"${brief(name)}" has no value`,
    'Write every attribute as name="value", the command\'s type as name="send_message".',
  )
}

function unquoted(name: string, rest: string): ScanFailure {
  if (TYPOGRAPHIC_QUOTE.test(rest[0] ?? '')) return typographic(name)
  if (rest.startsWith('\\')) {
    return notWellFormed(
      `the quotation marks of ${brief(name)} are escaped with backslashes`,
      `Write ${brief(name)}="…" with plain quotation marks.`,
    )
  }
  return notWellFormed(`the value of ${brief(name)} is not in quotes`, `Write ${brief(name)}="…".`)
}

function typographic(name: string): ScanFailure {
  return scanProblem(
    'NON_ASCII_QUOTES',
    `The value of ${brief(name)} is in typographic quotation marks`,
    'Use the plain ASCII quotation marks " or \' around values.',
  )
}

function unclosed(name: string, quote: string, value: string): ScanFailure {
  if (TYPOGRAPHIC_QUOTE.test(value)) return typographic(name)
  return scanProblem(
    'MISMATCHED_QUOTES',
    `The value of ${brief(name)} begins with ${quote}, but ${quote} does not close it`,
    `Close it with the same quotation mark: ${brief(name)}=${quote}…${quote}.`,
  )
}

/** Explains text directly after a value: the quotation marks do not match, or one in the value is not escaped. */
function runsOn(name: string, quote: string, value: string): ScanFailure {
  const beganAnother = /[\w.-]\s*=\s*$/.test(value.slice(-100))
  if (beganAnother || value.includes('>') || TYPOGRAPHIC_QUOTE.test(value))
    return unclosed(name, quote, value)
  return scanProblem(
    'UNESCAPED_CHARACTERS',
    `The value of ${brief(name)} contains the quotation mark ${quote} that surrounds it`,
    `Write it as ${quote === '"' ? '&quot;' : '&apos;'} inside the value, or put the value in the other kind of quotes.`,
  )
}

function tooMany(): ScanFailure {
  return notWellFormed(
    `it has more than ${MOST_ATTRIBUTES} attributes`,
    'Give only the parameters that the command needs.',
  )
}

// Character references: the five of XML, also in capitals, and numeric ones. Any other `&` is text.

const NAMED: ReadonlyMap<string, string> = new Map(
  Object.entries({ lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }).flatMap(([name, character]) => [
    [name, character],
    [name.toUpperCase(), character],
  ]),
)
const NUMERIC = /^#(?:\d{1,8}|[xX][\da-fA-F]{1,8})$/
const LONGEST = '#x12345678'.length

/** A loop, because `replace` with a callback takes four times as long for a text full of references. */
export function decodeReferences(text: string): string {
  let decoded = ''
  let copied = 0
  let end = -1
  for (let at = text.indexOf('&'); at >= 0; at = text.indexOf('&', at + 1)) {
    if (end < at) end = text.indexOf(';', at)
    if (end < 0) break
    const character = end - at - 1 > LONGEST ? undefined : characterOf(text.slice(at + 1, end))
    if (character === undefined) continue
    decoded += text.slice(copied, at) + character
    copied = end + 1
    at = end
  }
  return decoded + text.slice(copied)
}

function characterOf(reference: string): string | undefined {
  if (!NUMERIC.test(reference)) return NAMED.get(reference)
  const code = Number(`0${reference.slice(1)}`)
  const isScalar = code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
  return isScalar ? String.fromCodePoint(code) : undefined
}
