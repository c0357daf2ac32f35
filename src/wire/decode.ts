/** From what was found in the text to what it says, in whichever notation it is. */
import {
  type KnownCommands,
  MAX_COMMAND_BYTES,
  MAX_COMMAND_TEXT,
  type Problem,
  problem,
  type Reading,
} from './codec.ts'
import { missingType } from './naming.ts'
import { decodeMessage, decodeObject } from './orc-json/decode.ts'
import { decodeElement, decodeTag } from './orc-xml/decode.ts'
import { explain, thousands } from './scan/explanation.ts'
import type { CommandKind, Kind } from './scan/ledger.ts'
import type { HiddenClosingTag, Machine } from './scan/machine.ts'
import type { Window } from './scan/window.ts'

/** What the machine emits, but for the line. */
export interface Found<K extends Kind = Kind> {
  kind: K
  start: number
  /** Where an opening tag ends, the line of a quotation, the place of a problem in JSON, or the number of its keys. */
  inner: number
  /** Where the closing tag begins, or the number of keys around a JSON command. */
  last: number
  end: number
}

/** How much of a tag that does not end is looked at. */
const ENDLESS_LIMIT = 1024

/** `raw` is its text as it was written. */
export function decodeCommand(
  { kind, start, inner, last, end }: Found<CommandKind>,
  raw: string,
  window: Window,
  known: KnownCommands,
): Reading | Problem {
  const size = end - start
  if (kind === 'object') return checkSize(decodeObject(raw, inner, last, known), size)
  if (kind === 'message') return checkSize(decodeMessage(raw, last, known), size)
  if (kind === 'self-closing') return checkSize(decodeElement(raw, undefined, known), size)
  // In ASCII, which most commands are, a distance in bytes is one in characters.
  const isAscii = raw.length === size
  const tag = isAscii ? raw.slice(0, inner - start) : window.text(start, inner)
  const body = isAscii ? raw.slice(inner - start, last - start) : window.text(inner, last)
  return checkSize(decodeElement(tag, body, known), size)
}

export function explainProblem(
  { kind, start, inner, end }: Found<Exclude<Kind, CommandKind>>,
  machine: Machine,
  known: KnownCommands,
): Problem {
  const { window } = machine
  switch (kind) {
    case 'bare':
      return missingType()
    case 'unclosed':
    case 'unclosed-too-long':
    case 'endless': {
      const tagEnd = kind === 'endless' ? Math.min(end, start + ENDLESS_LIMIT) : inner
      const opening = decodeTag(window.text(start, tagEnd), known)
      if (!opening.ok) return opening
      return kind === 'unclosed-too-long' ? tooLong() : unclosed(opening.shape.type, machine.hidden())
    }
    default:
      return explain(kind, { quotedSince: inner, character: () => characterAt(window, inner) })
  }
}

/** C20. An invalid byte becomes three when it is decoded; nothing grows more than that. */
function checkSize(reading: Reading | Problem, bytes: number): Reading | Problem {
  if (!reading.ok || 3 * bytes <= MAX_COMMAND_BYTES) return reading
  for (const [name, value] of Object.entries(reading.fields)) {
    const size = Buffer.byteLength(value)
    if (size > MAX_COMMAND_BYTES) return tooLarge(reading.type, name, size)
  }
  return reading
}

function tooLarge(type: string, name: string, bytes: number): Problem {
  return problem(
    'TOO_LARGE',
    `The ${name} of ${type} is ${thousands(bytes)} bytes long; at most ${thousands(MAX_COMMAND_BYTES)} are allowed`,
    'Send it in parts, or put it into a file and send its path. Nothing was cut, and nothing was done.',
  )
}

function tooLong(): Problem {
  return problem(
    'TOO_LARGE',
    `The command is not closed within ${thousands(MAX_COMMAND_TEXT)} bytes`,
    'Close it with </orc-command>, or send less at once. What follows the tag was read as ordinary text.',
  )
}

const QUOTATIONS = {
  fence: 'a code block',
  response: 'a response block',
  message: 'a repeated message',
  cdata: 'a CDATA section',
}

function unclosed(type: string, hidden: HiddenClosingTag | undefined): Problem {
  const hint =
    hidden === undefined
      ? 'End it with </orc-command>, or its tag with "/>" if it has no body. What follows the tag was read as ordinary text.'
      : `The closing tag on line ${hidden.closingLine} is inside ${QUOTATIONS[hidden.kind]} that begins on line ${hidden.line} and does not end before it.`
  return problem('MISSING_CLOSE', `${type} has no closing tag </orc-command>`, hint)
}

function characterAt(window: Window, offset: number): string {
  const [character = ''] = window.text(offset, Math.min(offset + 4, window.end))
  return character
}
