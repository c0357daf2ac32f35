import type { InputBox, Screen } from '../program.ts'

/** The box is what stands between two lines drawn across the screen; what is in it is never at the very edge. */
const RULE = /^─{20,}/
const PROMPT = '❯'
const SGR = /\u001B\[([0-9;:]*)m/g

/**
 * What stands in Claude Code's input box. Anything but the box as it is known, with the cursor in it, is `unknown`:
 * a dialog, a menu in place of the box, shell mode, a screen that is being drawn.
 */
export function readInputBox(screen: Screen): InputBox {
  const box = findBox(screen)
  if (box === undefined) return 'unknown'
  const [first = '', ...others] = box.lines
  if (!first.startsWith(PROMPT)) return 'unknown'
  const written = [first.slice(PROMPT.length), ...others].join('')
  if (written.trim() === '') return 'empty'
  // A placeholder: dim, and the cursor still before it.
  const isUntouched = screen.cursor.y === box.top && screen.cursor.x <= 2 && others.join('').trim() === ''
  return isUntouched && isAllDim(screen, box.top) ? 'empty' : 'draft'
}

/** The text in the box, without the prompt sign; undefined where there is no box to be seen. */
export function inputBoxText(screen: Screen): string | undefined {
  const box = findBox(screen)
  if (box === undefined || !box.lines[0]?.startsWith(PROMPT)) return undefined
  return box.lines.join('\n').slice(PROMPT.length)
}

function findBox({ lines, cursor }: Screen): { top: number; lines: readonly string[] } | undefined {
  const isRule = (row: number) => RULE.test(lines[row] ?? '')
  let above = cursor.y - 1
  while (above >= 0 && !isRule(above)) above -= 1
  let below = cursor.y
  while (below < lines.length && !isRule(below)) below += 1
  if (above < 0 || below >= lines.length) return undefined
  return { top: above + 1, lines: lines.slice(above + 1, below) }
}

/** Whether every character after the prompt sign is dim; the one under the cursor is shown inverse instead. */
function isAllDim(screen: Screen, row: number): boolean {
  const look = { dim: false, inverse: false }
  // Looks go on from line to line until they are ended.
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
    // Colours bring their own numbers, among them 2.
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
