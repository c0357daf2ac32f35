import type { PaneScreen } from '../../../src/programs/program.ts'

/** Screens of Gemini CLI 0.61.0 in tmux, 80 columns. The cursor is where tmux says it is. */
const FOOTER = [
  '',
  ' workspace (/directory)             sandbox                          /model',
  ' ~/project                          no sandbox                         Auto',
]
const RULE = '─'.repeat(80)
const HINTS = ' Shift+Tab to accept edits                              2 GEMINI.md files'

function screen(
  box: readonly string[],
  cursor: { x: number; row: number },
  above: readonly string[] = [],
): PaneScreen {
  const before = [' > an earlier prompt', '✦ An answer.', ...above, RULE, HINTS, '']
  const lines = [...before, ...box, ...FOOTER]
  return { lines, styled: lines, cursor: { x: cursor.x, y: before.length + cursor.row } }
}

export const empty = screen([' >   Type your message or @path/to/file'], { x: 3, row: 0 })
export const draft = screen([' > a draft'], { x: 10, row: 0 })
export const multiline = screen([' > a draft', '   second line'], { x: 14, row: 1 })
export const pasted = screen([' > [Pasted Text: 42000 chars]'], { x: 29, row: 0 })
/** A draft with the text of the placeholder. */
export const imitation = screen([' >   Type your message or @path/to/file'], { x: 39, row: 0 })
export const shellMode = screen([' !   Type your shell command'], { x: 3, row: 0 })
export const vimInsert = screen([" >   Press 'Esc' for NORMAL mode."], { x: 3, row: 0 })
export const vimNormal = screen([" >   Press 'i' for INSERT mode."], { x: 3, row: 0 })
export const working = screen([' >   Type your message or @path/to/file'], { x: 3, row: 0 }, [
  ' ⠏ Thinking... (esc to cancel, 2s)                              ? for shortcuts',
])

export function dialog(command: string): PaneScreen {
  const lines = [
    ' > RUN: touch a.txt',
    '✦ Running it.',
    '╭──────────────────────────────────────────────────────────╮',
    `│ ? Shell  ${command}`,
    '│ Allow execution of [Shell]?                              │',
    '│ ● 1. Allow once                                          │',
    '│   2. Allow for this session                              │',
    '│   3. No, suggest changes (esc)                           │',
    '╰──────────────────────────────────────────────────────────╯',
    '',
  ]
  return { lines, styled: lines, cursor: { x: 0, y: lines.length - 1 } }
}
