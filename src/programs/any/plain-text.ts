/**
 * Terminal output as plain lines: escape sequences taken out, carriage returns and erasures carried out within their
 * line. Fed in pieces cut anywhere. What it makes of some bytes depends on those bytes alone.
 */
import { StringDecoder } from 'node:string_decoder'

export interface PlainText {
  push(bytes: Buffer): void
  /** The line the cursor is on. */
  line(): string
  /** Not in the middle of an escape sequence or a character. */
  isWhole(): boolean
  /** ESC [ ? 2004 h: the program takes a paste as one piece. Undefined before it said anything of it. */
  isBracketed(): boolean | undefined
}

type Mode = 'text' | 'escape' | 'intermediate' | 'csi' | 'string' | 'string-escape'

/** A sequence longer than any real one was never ended: what follows is text. */
const SEQUENCE_LIMIT = 4096
/** A line longer than that is broken. */
const LINE_LIMIT = 1 << 20

export function createPlainText(onLine: (line: string) => void): PlainText {
  const decoder = new StringDecoder('utf8')
  let mode: Mode = 'text'
  let sequence = ''
  let line = ''
  let column = 0
  let isBracketed: boolean | undefined
  let isCharacterCut = false

  function endLine() {
    onLine(line)
    line = ''
    column = 0
  }

  function write(run: string) {
    if (column > line.length) line = line.padEnd(column)
    line = line.slice(0, column) + run + line.slice(column + run.length)
    column += run.length
    if (line.length >= LINE_LIMIT) endLine()
  }

  function control(code: number) {
    if (code === 10) endLine()
    else if (code === 13) column = 0
    else if (code === 8) column = Math.max(0, column - 1)
    else if (code === 9) write('\t')
    else if (code === 27) begin('escape')
  }

  function begin(next: Mode) {
    mode = next
    sequence = ''
  }

  function introduce(character: string) {
    if (character === '[') begin('csi')
    else if (/[\]PX^_]/.test(character)) begin('string')
    else mode = isBetween(character, ' ', '/') ? 'intermediate' : 'text'
  }

  function csi(character: string) {
    if (!isBetween(character, '@', '~')) {
      sequence += character
      return
    }
    mode = 'text'
    const count = Math.max(1, Number.parseInt(sequence, 10) || 1)
    if (character === 'K') eraseLine(sequence)
    else if (character === 'C') column = Math.min(column + count, LINE_LIMIT)
    else if (character === 'D') column = Math.max(0, column - count)
    else if (character === 'G') column = Math.min(count, LINE_LIMIT) - 1
    else if (character === 'P') line = line.slice(0, column) + line.slice(column + count)
    else if ('hl'.includes(character)) setMode(sequence, character === 'h')
    // To another row: what stands in this one stays.
    else if ('ABEFHJdf'.includes(character) && line !== '') endLine()
  }

  function eraseLine(what: string) {
    if (what === '' || what === '0') line = line.slice(0, column)
    else if (what === '1') line = ' '.repeat(Math.min(column, line.length)) + line.slice(column)
    else if (what === '2') line = ''
  }

  function setMode(which: string, isOn: boolean) {
    if (which.startsWith('?') && which.slice(1).split(';').includes('2004')) isBracketed = isOn
  }

  function take(character: string) {
    if (mode === 'escape') introduce(character)
    else if (mode === 'intermediate') mode = isBetween(character, ' ', '/') ? mode : 'text'
    else if (mode === 'csi') csi(character)
    else if (mode === 'string-escape') mode = character === '\\' ? 'text' : 'string'
    else if (character === '\u0007') mode = 'text'
    else if (character === '\u001b') mode = 'string-escape'
    else sequence += character
    if (sequence.length > SEQUENCE_LIMIT) begin('text')
  }

  return {
    push(bytes) {
      const text = decoder.write(bytes)
      if (bytes.length > 0) isCharacterCut = text === '' || endsInCharacter(bytes)
      let at = 0
      while (at < text.length) {
        if (mode !== 'text') {
          take(text[at]!)
          at += 1
          continue
        }
        const end = nextControl(text, at)
        if (end > at) write(text.slice(at, end))
        if (end < text.length) control(text.charCodeAt(end))
        at = end + 1
      }
    },
    line: () => line,
    isWhole: () => mode === 'text' && !isCharacterCut,
    isBracketed: () => isBracketed,
  }
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/g

function nextControl(text: string, from: number): number {
  CONTROL.lastIndex = from
  return CONTROL.exec(text)?.index ?? text.length
}

function isBetween(character: string, first: string, last: string): boolean {
  return character >= first && character <= last
}

/** Whether the last bytes are the beginning of a longer character. */
function endsInCharacter(bytes: Buffer): boolean {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return false
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2)
  }
  return false
}
