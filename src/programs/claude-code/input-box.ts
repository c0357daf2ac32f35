import type { InputBox, PaneScreen } from '../program.ts'

/** The box is between two horizontal rules; its text never touches the edge. */
const RULE = /^─{20,}/
const PROMPT = '❯'
const SGR = /\u001B\[([0-9;:]*)m/g

/**
 * Reads Claude Code's input box. Anything other than the known box with the cursor in it is `unknown`: a
 * dialog, a menu, shell mode, a screen being drawn.
 */
export function readInputBox(screen: PaneScreen): InputBox {
  const box = findBox(screen)
  if (box === undefined) return 'unknown'
  const [first = '', ...others] = box.lines
  if (!first.startsWith(PROMPT)) return 'unknown'
  const written = [first.slice(PROMPT.length), ...others].join('')
  if (written.trim() === '') return 'empty'
  // A placeholder: dim, with the cursor before it.
  const isUntouched = screen.cursor.y === box.top && screen.cursor.x <= 2 && others.join('').trim() === ''
  return isUntouched && isAllDim(screen, box.top) ? 'empty' : 'draft'
}

/** Text in the box without the prompt sign; undefined if there is no box. */
export function inputBoxText(screen: PaneScreen): string | undefined {
  const box = findBox(screen)
  if (box === undefined || !box.lines[0]?.startsWith(PROMPT)) return undefined
  return box.lines.join('\n').slice(PROMPT.length)
}

function findBox({ lines, cursor }: PaneScreen): { top: number; lines: readonly string[] } | undefined {
  const isRule = (row: number) => RULE.test(lines[row] ?? '')
  let above = cursor.y - 1
  while (above >= 0 && !isRule(above)) above -= 1
  let below = cursor.y
  while (below < lines.length && !isRule(below)) below += 1
  if (above < 0 || below >= lines.length) return undefined
  return { top: above + 1, lines: lines.slice(above + 1, below) }
}

/** Whether every character after the prompt sign is dim; the one under the cursor is inverse instead. */
function isAllDim(screen: PaneScreen, row: number): boolean {
  const look = { dim: false, inverse: false }
  // Styles continue over lines until they are reset.
  for (const line of screen.styled.slice(0, row))
    for (const [, codes] of line.matchAll(SGR)) apply(look, codes!)
  const line = screen.styled[row] ?? ''
  let column = 0
  let at = 0
  for (const match of [...line.matchAll(SGR), undefined]) {
    const piece = line.slice(at, match?.index ?? line.length)
    for (const character of piece) {
      const isPrompt = column < 2
      const isUnderCursor = column === screen.cursor.x && look.inverse
      if (!isPrompt && !isUnderCursor && !look.dim && character.trim() !== '') return false
      column += 1
    }
    if (match === undefined) break
    apply(look, match[1]!)
    at = match.index + match[0].length
  }
  return true
}

function apply(look: { dim: boolean; inverse: boolean }, codes: string) {
  const numbers = codes.split(';')
  for (let index = 0; index < numbers.length; index++) {
    const code = Number(numbers[index] || 0)
    // Skip the parameters of a colour, which may be 2 as well.
    if (code === 38 || code === 48 || code === 58) {
      index += numbers[index + 1] === '5' ? 2 : 4
      continue
    }
    if (code === 0 || code === 22) look.dim = false
    if (code === 0 || code === 27) look.inverse = false
    if (code === 2) look.dim = true
    if (code === 7) look.inverse = true
  }
}
