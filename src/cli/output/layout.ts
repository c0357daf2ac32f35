import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { safe } from './print.ts'

/** Aligns cells in columns as wide as their widest cell; the last column isn't padded. */
export function table(
  rows: readonly (readonly string[])[],
  indent = '',
  style = (cell: string, _column: number) => cell,
): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, width(cell))
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, column) => {
        const padding = column === row.length - 1 ? '' : ' '.repeat(widths[column]! - width(cell))
        return style(cell, column) + padding
      })
      return `${indent}${cells.join('  ')}`.trimEnd()
    })
    .join('\n')
}

/** Approximate width on a terminal, good enough for names and titles: two columns for wide characters, else one. */
export function width(text: string): number {
  let sum = 0
  for (const character of text.normalize('NFC')) sum += columnsOf(character)
  return sum
}

function columnsOf(character: string): number {
  return /[\u1100-\u115f\u2e80-\uffdc]|\p{Emoji_Presentation}/u.test(character) ? 2 : 1
}

/** Cuts a line to `most` columns, ending with `…` if something is missing. */
export function clip(text: string, most: number): string {
  if (width(text) <= most) return text
  let kept = ''
  let used = 1
  for (const character of text.normalize('NFC')) {
    used += columnsOf(character)
    if (used > most) break
    kept += character
  }
  return most < 1 ? '' : `${kept}…`
}

/** `1 agent`, `2 agents`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Wraps to the width of the terminal; leaves lines whole in a pipe. */
export function fitted(text: string): string {
  return isatty(1) ? wrapped(text, process.stdout.columns || 80) : text
}

/** Text in fewer columns than this is unreadable. */
const MIN_WIDTH = 20

/** Wraps long lines, indenting the rest to where their last column begins. */
export function wrapped(text: string, most: number): string {
  if (most < MIN_WIDTH) return text
  return text
    .split('\n')
    .flatMap((line) => wrapLine(line, most))
    .join('\n')
}

function wrapLine(line: string, most: number): string[] {
  if (visibleWidth(line) <= most) return [line]
  const hanging = ' '.repeat(columnOf(line, most))
  const lines: string[] = []
  // Each part keeps the spaces before its word, so that columns stay aligned.
  let current = ''
  for (const part of line.match(/ *[^ ]+/g) ?? []) {
    if (current.trim() !== '' && visibleWidth(current + part) > most) {
      lines.push(current)
      current = hanging + part.trimStart()
    } else current += part
  }
  return [...lines, current]
}

/** The position of the last column, or a plain indent if too little room is left beside it. */
function columnOf(line: string, most: number): number {
  const [head] = /^.*\S {2,}(?=\S)/.exec(line) ?? []
  const [indent] = /^ */.exec(line)!
  const column = head === undefined ? indent.length : visibleWidth(head)
  const hasRoom = column <= most / 2 || most - column >= MIN_WIDTH
  return hasRoom ? column : indent.length + 4
}

/** Width without the color codes. */
function visibleWidth(text: string): number {
  return width(text.replace(/\x1b\[\d+m/g, ''))
}

/** Shows on a terminal that the program is busy, until `end`. */
export function showWorking(text: string): { end(): void } {
  if (!isatty(2)) return { end() {} }
  writeSync(2, `${text} …`)
  return { end: () => void writeSync(2, '\r\x1b[K') }
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** `████▌░░░░░ 9/20`. Clamps values above the total and values that aren't numbers. */
export function bar(done: number, total: number, width = 10): string {
  const share = total > 0 ? Math.min(1, Math.max(0, done / total)) : 0
  const eighths = Math.round(share * width * 8)
  const full = Math.floor(eighths / 8)
  const part = EIGHTHS[eighths % 8]!
  const empty = width - full - (part === '' ? 0 : 1)
  return `${'█'.repeat(full)}${part}${'░'.repeat(empty)} ${round(done)}/${round(total)}`
}

const round = (number: number) => String(Math.round(number * 10) / 10)

/** A text on a terminal that each draw overwrites. */
interface LiveText {
  draw(text: string): void
}

export function canRedraw(): boolean {
  return isatty(1) && process.env.TERM !== 'dumb'
}

const UP = (lines: number) => (lines === 0 ? '\r' : `\r\x1b[${lines}A`)
const CLEAR_LINE_END = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
/** Disables wrapping while drawing, so that each line takes exactly one row. */
const CUT = '\x1b[?7l'
const WRAP = '\x1b[?7h'

/**
 * Columns and rows of the terminal, which may have changed since the last draw. The last column stays free: with the
 * cursor in it, clearing to the end of the line would erase its character.
 */
export function screenSize(): { width: number; height: number } {
  const { columns = 80, rows = 24 } = process.stdout
  return { width: Math.max(1, (columns || 80) - 1), height: Math.max(2, rows || 24) }
}

/** Overwrites lines without clearing first, and skips identical frames, so that nothing flickers. */
export function openLiveText(): LiveText {
  let drawn = 0
  let before = ''
  return {
    draw(text) {
      const { height } = screenSize()
      const all = safe(text, 'out').split('\n')
      const shown =
        all.length < height
          ? all
          : [...all.slice(0, height - 2), `… and ${all.length - height + 2} more; orc task list shows them`]
      const frame = shown.map((line) => `${line}${CLEAR_LINE_END}\n`).join('')
      if (frame === before) return
      writeSync(1, `${UP(drawn)}${CUT}${frame}${CLEAR_BELOW}${WRAP}`)
      drawn = shown.length
      before = frame
    },
  }
}
