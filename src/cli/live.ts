import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { safe } from './output.ts'

/** A text that is drawn over itself again and again, on a terminal. */
export interface Live {
  draw(text: string): void
}

export function canRedraw(): boolean {
  return isatty(1) && process.env.TERM !== 'dumb'
}

const UP = (lines: number) => (lines === 0 ? '\r' : `\r\x1b[${lines}A`)
const CLEAR_BELOW = '\x1b[J'
/** While it is drawn, a line that is too long is cut off instead of wrapped: each line is one row. */
const CUT = '\x1b[?7l'
const WRAP = '\x1b[?7h'

export function openLive(): Live {
  let drawn = 0
  return {
    draw(text) {
      const rows = Math.max(2, process.stdout.rows || 24)
      const all = safe(text, 'out').split('\n')
      const shown =
        all.length < rows
          ? all
          : [...all.slice(0, rows - 2), `… and ${all.length - rows + 2} more; orc tasks lists them`]
      writeSync(1, `${UP(drawn)}${CLEAR_BELOW}${CUT}${shown.join('\n')}\n${WRAP}`)
      drawn = shown.length
    },
  }
}
