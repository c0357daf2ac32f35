/** What a pane shows, as tmux gives it. */
import type { Screen } from '../../programs/program.ts'
import type { Command } from './control.ts'
import type { Block } from './control-lines.ts'

/**
 * Twice: with soft-wrapped lines joined, and row by row, for where the cursor is in the joined ones. Trailing spaces
 * are kept in both, so that rows put together are the line.
 */
export function captureScreen(pane: string, isPlain = false): Command[] {
  return [
    ['capture-pane', '-p', ...(isPlain ? [] : ['-e']), '-J', '-t', pane],
    ['capture-pane', '-p', '-N', '-t', pane],
  ]
}

const SGR = /\u001b\[[0-9;:]*m|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\u000e\u000f]/g

export function readScreen(joined: Block, rows: Block, cursor: { x: number; y: number }): Screen {
  const plain = joined.lines.map((line) => line.replace(SGR, ''))
  return {
    lines: plain.map((line) => line.trimEnd()),
    styled: joined.lines,
    cursor: cursorInJoined(plain, rows.lines, cursor),
  }
}

/** A line is as many rows as it takes to make up its text. In it, the cursor stands before the character at `x`. */
function cursorInJoined(lines: readonly string[], rows: readonly string[], cursor: { x: number; y: number }) {
  let row = 0
  for (const [y, line] of lines.entries()) {
    let text = rows[row] ?? ''
    let before = 0
    while (true) {
      if (row === cursor.y) return { x: before + indexOfColumn(rows[row] ?? '', cursor.x), y }
      if (text.length >= line.length || row + 1 >= rows.length) break
      before = text.length
      row += 1
      text += rows[row]
    }
    row += 1
  }
  return cursor
}

const NO_WIDTH = /^[\p{M}\u200b-\u200f]/u
const TWICE_AS_WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u

/** Where in the text that column is. Where tmux counts otherwise, the input box is not made out, and we wait. */
export function indexOfColumn(text: string, column: number): number {
  let index = 0
  let at = 0
  for (const character of text) {
    if (at >= column && !NO_WIDTH.test(character)) return index
    index += character.length
    if (!NO_WIDTH.test(character)) at += TWICE_AS_WIDE.test(character) ? 2 : 1
  }
  return index + Math.max(0, column - at)
}
