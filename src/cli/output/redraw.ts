import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { safe } from './print.ts'

/** A text on a terminal that each draw overwrites. */
interface LiveText {
  draw(text: string): void
}

export function canRedraw(): boolean {
  return isatty(1) && process.env.TERM !== 'dumb'
}

const UP = (lines: number) => (lines === 0 ? '\r' : `\r\x1b[${lines}A`)
const CLEAR_LINE_END = '\x1b[K'
const CLEAR_BELOW = '\x1b[J'
/** Disables wrapping while drawing, so that each line takes exactly one row. */
const CUT = '\x1b[?7l'
const WRAP = '\x1b[?7h'

/**
 * Columns and rows of the terminal, which may have changed since the last draw. The last column stays free: with the
 * cursor in it, clearing to the end of the line would erase its character.
 */
export function screenSize(): { width: number; height: number } {
  const { columns = 80, rows = 24 } = process.stdout
  return { width: Math.max(1, (columns || 80) - 1), height: Math.max(2, rows || 24) }
}

/** Overwrites lines without clearing first, and skips identical frames, so that nothing flickers. */
export function openLiveText(
  tooMany = (count: number) => `… and ${count} more; orc tasks lists them`,
): LiveText {
  let drawn = 0
  let before = ''
  return {
    draw(text) {
      const { height } = screenSize()
      const all = safe(text, 'out').split('\n')
      const shown =
        all.length < height ? all : [...all.slice(0, height - 2), tooMany(all.length - height + 2)]
      const frame = shown.map((line) => `${line}${CLEAR_LINE_END}\n`).join('')
      if (frame === before) return
      writeSync(1, `${UP(drawn)}${CUT}${frame}${CLEAR_BELOW}${WRAP}`)
      drawn = shown.length
      before = frame
    },
  }
}
