/**
 * Terminal output as plain lines: removes escape sequences, and applies carriage returns and erasures within
 * their line. Accepts chunks cut anywhere; the result depends on the bytes alone.
 * `mode` is `text`, or the part of an escape sequence that is being read; `sequence` holds its parameters. A sequence
 * longer than MAX_SEQUENCE was never ended, so the characters after it are text.
 */
import { StringDecoder } from 'node:string_decoder'

const MAX_SEQUENCE = 4096
/** Longer lines are broken. */
const MAX_LINE = 1 << 20

export type PlainText = ReturnType<typeof createPlainText>

export function createPlainText(onLine: (line: string) => void) {
  let mode: 'text' | 'escape' | 'intermediate' | 'csi' | 'string' | 'string-escape' = 'text'
  let sequence = ''
  let line = ''
  let column = 0
  let isBracketed: boolean | undefined
  /** Holds the start of a character whose end has not arrived yet. */
  let cut: StringDecoder | undefined

  function decode(bytes: Buffer): string {
    if (bytes.length === 0) return ''
    if (cut === undefined && !endsInCharacter(bytes)) return bytes.toString()
    const decoder = cut ?? new StringDecoder('utf8')
    const text = decoder.write(bytes)
    cut = text === '' || endsInCharacter(bytes) ? decoder : undefined
    return text
  }

  function endLine() {
    onLine(line)
    line = ''
    column = 0
  }

  function write(run: string) {
    const padded = line.padEnd(column)
    line = padded.slice(0, column) + run + padded.slice(column + run.length)
    column += run.length
    if (line.length >= MAX_LINE) endLine()
  }

  function control(code: number) {
    if (code === 10) endLine()
    else if (code === 13) column = 0
    else if (code === 8) column = Math.max(0, column - 1)
    else if (code === 9) write('\t')
    else if (code === 27) begin('escape')
  }

  function begin(next: typeof mode) {
    mode = next
    sequence = ''
  }

  function takeEscape(character: string) {
    if (mode === 'escape') introduce(character)
    else if (mode === 'intermediate') mode = isBetween(character, ' ', '/') ? mode : 'text'
    else if (mode === 'csi') takeCsi(character)
    else if (mode === 'string-escape') mode = character === '\\' ? 'text' : 'string'
    else if (character === '\u0007') mode = 'text'
    else if (character === '\u001b') mode = 'string-escape'
    else sequence += character
    if (sequence.length > MAX_SEQUENCE) begin('text')
  }

  function introduce(character: string) {
    if (character === '[') begin('csi')
    else if (/[\]PX^_]/.test(character)) begin('string')
    else mode = isBetween(character, ' ', '/') ? 'intermediate' : 'text'
  }

  function takeCsi(character: string) {
    if (!isBetween(character, '@', '~')) {
      sequence += character
      return
    }
    mode = 'text'
    const count = Math.max(1, Number.parseInt(sequence, 10) || 1)
    if (character === 'K') eraseLine()
    else if (character === 'C') column = Math.min(column + count, MAX_LINE)
    else if (character === 'D') column = Math.max(0, column - count)
    else if (character === 'G') column = Math.min(count, MAX_LINE) - 1
    else if (character === 'P') line = line.slice(0, column) + line.slice(column + count)
    else if ('hl'.includes(character) && /^\?(?:.*;)?2004(?:;|$)/.test(sequence))
      isBracketed = character === 'h'
    // The cursor moves to another row, so this line is complete.
    else if ('ABEFHJdf'.includes(character) && line !== '') endLine()
  }

  function eraseLine() {
    if (sequence === '' || sequence === '0') line = line.slice(0, column)
    else if (sequence === '1') line = ' '.repeat(Math.min(column, line.length)) + line.slice(column)
    else if (sequence === '2') line = ''
  }

  return {
    push(bytes: Buffer) {
      const text = decode(bytes)
      for (let at = 0; at < text.length; ) {
        if (mode !== 'text') {
          takeEscape(text[at]!)
          at += 1
          continue
        }
        const end = nextControl(text, at)
        if (end > at) write(text.slice(at, end))
        if (end < text.length) control(text.charCodeAt(end))
        at = end + 1
      }
    },
    /** The line the cursor is on. */
    line: () => line,
    /** Not in the middle of an escape sequence or a character. */
    isWhole: () => mode === 'text' && cut === undefined,
    /** ESC [ ? 2004 h: the program accepts bracketed paste. Undefined before it says so. */
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

/** Whether the bytes end in the middle of a character. */
function endsInCharacter(bytes: Buffer): boolean {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return false
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2)
  }
  return false
}
