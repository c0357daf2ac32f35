import { isatty } from 'node:tty'
import { width } from './layout.ts'

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
