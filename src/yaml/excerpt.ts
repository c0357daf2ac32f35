import type { LineCounter } from 'yaml'
import type { Problem, SourceExcerpt } from './problem.ts'

const WIDTH = 100
const ROOM_AFTER = 20

/** Matches each character of a password in `://user:…@`; masking one by one keeps the columns right. */
const PASSWORD = /(?<=:\/\/[^\s:@/]{0,64}:[^\s@]{0,100})[^\s@](?=[^\s@]{0,100}@)/g

/** Returns line and column of an offset, with an excerpt of the line. */
export function positionAt(
  offset: number,
  text: string,
  lines: LineCounter,
): Pick<Problem, 'line' | 'column' | 'excerpt'> {
  const found = lines.linePos(offset)
  const [line, column] = [Math.max(1, found.line), Math.max(1, found.col)]
  const begin = lines.lineStarts[line - 1] ?? 0
  const end = lines.lineStarts[line] ?? text.length
  return { line, column, excerpt: excerptOf(text, begin, end, column) }
}

/** Cuts a window around the column and replaces control characters, which could move the cursor of a terminal. */
function excerptOf(text: string, begin: number, end: number, column: number): SourceExcerpt {
  const skipped = Math.max(0, column - WIDTH + ROOM_AFTER)
  const window = text.slice(begin + skipped, Math.min(end, begin + skipped + WIDTH))
  const shown = window.replace(/[\x00-\x1f\x7f-\x9f]/g, ' ').trimEnd()
  return { text: shown.replace(PASSWORD, '*'), column: column - skipped }
}
