/**
 * Terminal output as plain lines: removes escape sequences, and applies carriage returns and erasures within
 * their line. Accepts chunks cut anywhere; the result depends on the bytes alone.
 */
import { StringDecoder } from 'node:string_decoder'

export interface PlainText {
  push(bytes: Buffer): void
  /** The line the cursor is on. */
  line(): string
  /** Not in the middle of an escape sequence or a character. */
  isWhole(): boolean
  /** ESC [ ? 2004 h: the program accepts bracketed paste. Undefined before it says so. */
  isBracketed(): boolean | undefined
}

type Mode = 'text' | 'escape' | 'intermediate' | 'csi' | 'string' | 'string-escape'

/** A sequence longer than any real one was never ended: what follows is text. */
const SEQUENCE_LIMIT = 4096
/** Longer lines are broken. */
const LINE_LIMIT = 1 << 20

/** Parser state of one terminal. */
interface PlainTextReading {
  readonly onLine: (line: string) => void
  mode: Mode
  sequence: string
  line: string
  column: number
  isBracketed: boolean | undefined
  /** The start of a character whose end has not arrived yet. */
  cut: StringDecoder | undefined
}

export function createPlainText(onLine: (line: string) => void): PlainText {
  const reading: PlainTextReading = {
    ...{ onLine, mode: 'text', sequence: '', line: '', column: 0 },
    ...{ isBracketed: undefined, cut: undefined },
  }
  return {
    push: (bytes) => read(reading, decode(reading, bytes)),
    line: () => reading.line,
    isWhole: () => reading.mode === 'text' && reading.cut === undefined,
    isBracketed: () => reading.isBracketed,
  }
}

function decode(reading: PlainTextReading, bytes: Buffer): string {
  if (bytes.length === 0) return ''
  if (reading.cut === undefined && !endsInCharacter(bytes)) return bytes.toString()
  const decoder = reading.cut ?? new StringDecoder('utf8')
  const text = decoder.write(bytes)
  reading.cut = text === '' || endsInCharacter(bytes) ? decoder : undefined
  return text
}

function read(reading: PlainTextReading, text: string) {
  let at = 0
  while (at < text.length) {
    if (reading.mode !== 'text') {
      take(reading, text[at]!)
      at += 1
      continue
    }
    const end = nextControl(text, at)
    if (end > at) write(reading, text.slice(at, end))
    if (end < text.length) control(reading, text.charCodeAt(end))
    at = end + 1
  }
}

function endLine(reading: PlainTextReading) {
  reading.onLine(reading.line)
  reading.line = ''
  reading.column = 0
}

function write(reading: PlainTextReading, run: string) {
  const line = reading.line.padEnd(reading.column)
  reading.line = line.slice(0, reading.column) + run + line.slice(reading.column + run.length)
  reading.column += run.length
  if (reading.line.length >= LINE_LIMIT) endLine(reading)
}

function control(reading: PlainTextReading, code: number) {
  if (code === 10) endLine(reading)
  else if (code === 13) reading.column = 0
  else if (code === 8) reading.column = Math.max(0, reading.column - 1)
  else if (code === 9) write(reading, '\t')
  else if (code === 27) begin(reading, 'escape')
}

function begin(reading: PlainTextReading, next: Mode) {
  reading.mode = next
  reading.sequence = ''
}

function take(reading: PlainTextReading, character: string) {
  const { mode } = reading
  if (mode === 'escape') introduce(reading, character)
  else if (mode === 'intermediate') reading.mode = isBetween(character, ' ', '/') ? mode : 'text'
  else if (mode === 'csi') csi(reading, character)
  else if (mode === 'string-escape') reading.mode = character === '\\' ? 'text' : 'string'
  else if (character === '\u0007') reading.mode = 'text'
  else if (character === '\u001b') reading.mode = 'string-escape'
  else reading.sequence += character
  if (reading.sequence.length > SEQUENCE_LIMIT) begin(reading, 'text')
}

function introduce(reading: PlainTextReading, character: string) {
  if (character === '[') begin(reading, 'csi')
  else if (/[\]PX^_]/.test(character)) begin(reading, 'string')
  else reading.mode = isBetween(character, ' ', '/') ? 'intermediate' : 'text'
}

function csi(reading: PlainTextReading, character: string) {
  if (!isBetween(character, '@', '~')) {
    reading.sequence += character
    return
  }
  reading.mode = 'text'
  const { sequence, line, column } = reading
  const count = Math.max(1, Number.parseInt(sequence, 10) || 1)
  if (character === 'K') eraseLine(reading)
  else if (character === 'C') reading.column = Math.min(column + count, LINE_LIMIT)
  else if (character === 'D') reading.column = Math.max(0, column - count)
  else if (character === 'G') reading.column = Math.min(count, LINE_LIMIT) - 1
  else if (character === 'P') reading.line = line.slice(0, column) + line.slice(column + count)
  else if ('hl'.includes(character)) setMode(reading, character === 'h')
  // Moves to another row: this one stays.
  else if ('ABEFHJdf'.includes(character) && line !== '') endLine(reading)
}

function eraseLine(reading: PlainTextReading) {
  const { sequence: what, line, column } = reading
  if (what === '' || what === '0') reading.line = line.slice(0, column)
  else if (what === '1') reading.line = ' '.repeat(Math.min(column, line.length)) + line.slice(column)
  else if (what === '2') reading.line = ''
}

function setMode(reading: PlainTextReading, isOn: boolean) {
  const { sequence } = reading
  if (sequence.startsWith('?') && sequence.slice(1).split(';').includes('2004')) reading.isBracketed = isOn
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g

function nextControl(text: string, from: number): number {
  CONTROL.lastIndex = from
  return CONTROL.exec(text)?.index ?? text.length
}

function isBetween(character: string, first: string, last: string): boolean {
  return character >= first && character <= last
}

/** Whether the last bytes are the start of a longer character. */
function endsInCharacter(bytes: Buffer): boolean {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return false
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2)
  }
  return false
}
