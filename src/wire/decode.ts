/** From what was found in the text to what it says, in whichever notation it is. */
import { type KnownCommands, MAX_COMMAND_BYTES, type Problem, problem, type Reading } from './codec.ts'
import { missingType } from './naming.ts'
import { decodeObject } from './orc-json/decode.ts'
import { decodeElement, decodeTag } from './orc-xml/decode.ts'
import { explain, thousands } from './scan/explanation.ts'
import type { Kind } from './scan/ledger.ts'
import type { Machine } from './scan/machine.ts'

export interface Found {
  kind: Kind
  line: number
  start: number
  /** Where an opening tag ends, the line on which a quotation begins, or the place of a problem in JSON. */
  inner: number
  /** Where the closing tag begins. */
  last: number
  end: number
}

/** How much of a tag that does not end is looked at. */
const ENDLESS_LIMIT = 1024

export function isCommandLike(kind: Kind): boolean {
  return kind === 'element' || kind === 'self-closing' || kind === 'object'
}

export function decode(
  found: Found,
  { window, hidden }: Machine,
  known: KnownCommands,
): (Reading & { raw: string }) | Problem {
  const { kind, start, inner, end } = found
  switch (kind) {
    case 'element':
    case 'self-closing':
    case 'object':
      return decodeCommand(found, window, known)
    case 'bare':
      return missingType()
    case 'endless': {
      const opening = decodeTag(window.text(start, Math.min(end, start + ENDLESS_LIMIT)), known)
      return opening.ok ? unclosed(opening.shape.type, hidden) : opening
    }
    case 'unclosed': {
      const opening = decodeTag(window.text(start, inner), known)
      return opening.ok ? unclosed(opening.shape.type, hidden) : opening
    }
    default:
      return explain(kind, { quotedSince: inner, character: () => characterAt(window, inner) })
  }
}

function decodeCommand(
  { kind, start, inner, last, end }: Found,
  window: Machine['window'],
  known: KnownCommands,
) {
  const raw = window.text(start, end)
  // In ASCII, which most commands are, an offset in the bytes is one in the string.
  const slice = (from: number, to: number) =>
    raw.length === end - start ? raw.slice(from - start, to - start) : window.text(from, to)
  const reading =
    kind === 'object'
      ? decodeObject(raw, known)
      : decodeElement(slice(start, inner), kind === 'element' ? slice(inner, last) : undefined, known)
  if (!reading.ok) return reading
  // An invalid byte becomes three when it is decoded, nothing grows more than that.
  const tooLong = 3 * raw.length > MAX_COMMAND_BYTES ? fieldTooLong(reading.fields) : undefined
  return tooLong === undefined ? { ...reading, raw } : tooLarge(reading.type, tooLong)
}

function fieldTooLong(fields: Record<string, string>): [name: string, bytes: number] | undefined {
  for (const [name, value] of Object.entries(fields)) {
    const bytes = Buffer.byteLength(value)
    if (bytes > MAX_COMMAND_BYTES) return [name, bytes]
  }
  return undefined
}

function tooLarge(type: string, [name, bytes]: [string, number]): Problem {
  return problem(
    'TOO_LARGE',
    `The ${name} of ${type} is ${thousands(bytes)} bytes long; at most ${thousands(MAX_COMMAND_BYTES)} are allowed`,
    'Send it in parts, or put it into a file and send its path. Nothing was cut, and nothing was done.',
  )
}

function unclosed(type: string, hidden: Machine['hidden']): Problem {
  const what = {
    fence: 'a code block',
    response: 'a response block',
    message: 'a repeated message',
    cdata: 'a CDATA section',
  }
  const hint =
    hidden === undefined
      ? 'End it with </orc-command>, or its tag with "/>" if it has no body. What follows the tag was read as ordinary text.'
      : `The closing tag on line ${hidden.closingLine} is inside ${what[hidden.kind]} that begins on line ${hidden.line} and does not end before it.`
  return problem('MISSING_CLOSE', `${type} has no closing tag </orc-command>`, hint)
}

function characterAt(window: Machine['window'], offset: number): string {
  const [character = ''] = window.text(offset, Math.min(offset + 4, window.end))
  return character
}
