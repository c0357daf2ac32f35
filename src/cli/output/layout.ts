import { isatty } from 'node:tty'

/** Columns side by side, each as wide as its widest cell; the last one is left ragged. */
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

/** Good enough for names and titles: one place for each character, two for wide ones. */
export function width(text: string): number {
  let sum = 0
  for (const character of text.normalize('NFC')) sum += placesOf(character)
  return sum
}

function placesOf(character: string): number {
  return /[\u1100-\u115f\u2e80-\uffdc]|\p{Emoji_Presentation}/u.test(character) ? 2 : 1
}

/** As much of a line as fits, and a mark where something is missing. */
export function clip(text: string, most: number): string {
  if (width(text) <= most) return text
  let kept = ''
  let used = 1
  for (const character of text.normalize('NFC')) {
    used += placesOf(character)
    if (used > most) break
    kept += character
  }
  return most < 1 ? '' : `${kept}…`
}

/** `1 agent`, `2 agents`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** As wide as the terminal where there is one; in a pipe a line stays a line. */
export function fitted(text: string): string {
  return isatty(1) ? wrapped(text, process.stdout.columns || 80) : text
}

/** Narrower than that nothing is readable, wrapped or not. */
const LEAST = 20

/** Lines that are too long go on below where their last column begins. */
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
  // With the spaces before each word: those of columns stay.
  let current = ''
  for (const part of line.match(/ *[^ ]+/g) ?? []) {
    if (current.trim() !== '' && places(current + part) > most) {
      lines.push(current)
      current = hanging + part.trimStart()
    } else current += part
  }
  return [...lines, current]
}

/** Where the last column begins, unless too little would be left beside it. */
function columnOf(line: string, most: number): number {
  const [head] = /^.*\S {2,}(?=\S)/.exec(line) ?? []
  const [indent] = /^ */.exec(line)!
  const column = head === undefined ? indent.length : places(head)
  const hasRoom = column <= most / 2 || most - column >= LEAST
  return hasRoom ? column : indent.length + 4
}

/** On the screen: colours take none. */
function places(text: string): number {
  return width(text.replace(/\x1b\[\d+m/g, ''))
}
