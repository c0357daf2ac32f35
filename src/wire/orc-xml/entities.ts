/** Character references: the five of XML, also in capitals, and numeric ones. Anything else with an `&` is text. */

const NAMED: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }
const REFERENCE = /&(?:#(\d{1,8})|#[xX]([0-9a-fA-F]{1,8})|([a-z]{2,4}|[A-Z]{2,4}));/g

export function decodeReferences(text: string): string {
  if (!text.includes('&')) return text
  if (/&[#A-Z]/.test(text)) return text.replace(REFERENCE, decodeReference)
  // The usual ones, much faster. What `&amp;` leaves behind is not looked at again: it comes last.
  return text
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&apos;/g, "'")
    .replace(/&amp;/g, '&')
}

function decodeReference(reference: string, decimal?: string, hexadecimal?: string, name?: string): string {
  if (name !== undefined) return NAMED[name.toLowerCase()] ?? reference
  const code = decimal === undefined ? Number.parseInt(hexadecimal!, 16) : Number(decimal)
  return isScalar(code) ? String.fromCodePoint(code) : reference
}

function isScalar(code: number): boolean {
  return code > 0 && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff)
}

/** The matches of a pattern as references, character by character. */
export function encodeReferences(text: string, pattern: RegExp): string {
  return text.replace(pattern, (match) => Array.from(match, encodeReference).join(''))
}

function encodeReference(character: string): string {
  const name = Object.keys(NAMED).find((key) => NAMED[key] === character)
  return name === undefined ? `&#${character.codePointAt(0)};` : `&${name};`
}
