import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'

interface ProgressLine {
  update(count: number): void
  end(): void
}

const EVERY_MS = 100

/** A counter on one line for long work; silent unless standard error is a terminal. */
export function showProgress(what: string): ProgressLine {
  if (!isatty(2)) return { update() {}, end() {} }
  let shownAt = 0
  return {
    update(count) {
      const now = Date.now()
      if (now - shownAt < EVERY_MS) return
      shownAt = now
      writeSync(2, `\r${count.toLocaleString('en')} ${what} …\x1b[K`)
    },
    end() {
      if (shownAt > 0) writeSync(2, '\r\x1b[K')
    },
  }
}

/** For work whose steps can't be counted. */
export function showWorking(text: string): { end(): void } {
  if (!isatty(2)) return { end() {} }
  writeSync(2, `${text} …`)
  return { end: () => void writeSync(2, '\r\x1b[K') }
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** `████▌░░░░░ 9/20`. Clamps values above the total and values that aren't numbers. */
export function bar(done: number, total: number, width = 10): string {
  const share = total > 0 ? Math.min(1, Math.max(0, done / total)) : 0
  const eighths = Math.round(share * width * 8)
  const full = Math.floor(eighths / 8)
  const part = EIGHTHS[eighths % 8]!
  const empty = width - full - (part === '' ? 0 : 1)
  return `${'█'.repeat(full)}${part}${'░'.repeat(empty)} ${round(done)}/${round(total)}`
}

const round = (number: number) => String(Math.round(number * 10) / 10)
