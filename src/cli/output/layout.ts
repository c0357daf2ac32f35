import { isatty } from 'node:tty'

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

/** Wrapping to fewer columns than this helps nobody. */
const LEAST = 20

/** Wraps long lines, indenting the rest to where their last column begins. */
export function wrapped(text: string, most: number): string {
  if (most < LEAST) return text
  return text
    .split('\n')
    .flatMap((line) => wrapLine(line, most))
    .join('\n')
}

function wrapLine(line: string, most: number): string[] {
  if (places(line) <= most) return [line]
  const hanging = ' '.repeat(columnOf(line, most))
  const lines: string[] = []
  // Each part keeps the spaces before its word, so that columns stay aligned.
  let current = ''
  for (const part of line.match(/ *[^ ]+/g) ?? []) {
    if (current.trim() !== '' && places(current + part) > most) {
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
  const column = head === undefined ? indent.length : places(head)
  const hasRoom = column <= most / 2 || most - column >= LEAST
  return hasRoom ? column : indent.length + 4
}

/** Width without the color codes. */
function places(text: string): number {
  return width(text.replace(/\x1b\[\d+m/g, ''))
}
