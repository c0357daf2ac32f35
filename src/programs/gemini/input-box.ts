import type { InputBox, Screen } from '../program.ts'

/** The prompt sign, with a frame before it on some terminals. */
const PROMPT = /^(\s*[│┃]?\s*)> /
/** What stands in an empty box; with vim keys, only where it takes text. */
const PLACEHOLDERS = ['Type your message or @path/to/file', "Press 'Esc' for NORMAL mode."]

/**
 * What stands in Gemini's input box. Anything but the box as it is known is `unknown`: a dialog in its place, shell
 * mode, a screen that is being drawn.
 */
export function readInputBox({ lines, cursor }: Screen): InputBox {
  const row = promptRow(lines, cursor.y)
  if (row === undefined) return 'unknown'
  const line = lines[row]!
  const start = PROMPT.exec(line)![0].length
  const written = line
    .slice(start)
    .replace(/[│┃]\s*$/, '')
    .trim()
  // The cursor stands before the placeholder; behind it, it would be what a person has typed.
  if (row === cursor.y && cursor.x === start && PLACEHOLDERS.includes(written)) return 'empty'
  return 'draft'
}

/** A request runs: beside its spinner it says how to stop it. */
export function isWorking({ lines }: Pick<Screen, 'lines'>): boolean {
  return lines.some((line) => line.includes('(esc to cancel'))
}

/** A draft may have several lines; the cursor is in one of them. Earlier prompts are shown with the same sign. */
function promptRow(lines: readonly string[], cursorRow: number): number | undefined {
  for (let row = cursorRow; row >= 0; row--) {
    const line = lines[row] ?? ''
    if (PROMPT.test(line)) return row
    // Further lines of a draft are indented; anything else ends the box.
    if (!/^\s*[│┃]?\s{3}\S|^\s*[│┃]?\s*[│┃]?\s*$/.test(line)) return undefined
  }
  return undefined
}
