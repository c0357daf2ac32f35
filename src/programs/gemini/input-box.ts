import type { InputBox, PaneScreen } from '../program.ts'

/** The prompt sign, after a frame on some terminals. */
const PROMPT = /^(\s*[│┃]?\s*)> /
/** Content of an empty box; with vim keys, only in insert mode. */
const PLACEHOLDERS = ['Type your message or @path/to/file', "Press 'Esc' for NORMAL mode."]

/**
 * Reads Gemini's input box. Anything other than the known box is `unknown`: a dialog, shell mode, a screen
 * being drawn.
 */
export function readInputBox({ lines, cursor }: PaneScreen): InputBox {
  const row = promptRow(lines, cursor.y)
  if (row === undefined) return 'unknown'
  const line = lines[row]!
  const start = PROMPT.exec(line)![0].length
  const written = line
    .slice(start)
    .replace(/[│┃]\s*$/, '')
    .trim()
  // The cursor is before the placeholder; after typed text it would be behind it.
  if (row === cursor.y && cursor.x === start && PLACEHOLDERS.includes(written)) return 'empty'
  return 'draft'
}

/** A request runs: the spinner's line says how to stop it. */
export function isWorking({ lines }: Pick<PaneScreen, 'lines'>): boolean {
  return lines.some((line) => line.includes('(esc to cancel'))
}

/** A draft may have several lines; the cursor is in one of them. Earlier prompts show the same sign. */
function promptRow(lines: readonly string[], cursorRow: number): number | undefined {
  for (let row = cursorRow; row >= 0; row--) {
    const line = lines[row] ?? ''
    if (PROMPT.test(line)) return row
    // Further lines of a draft are indented; anything else ends the box.
    if (!/^\s*[│┃]?\s{3}\S|^\s*[│┃]?\s*[│┃]?\s*$/.test(line)) return undefined
  }
  return undefined
}
