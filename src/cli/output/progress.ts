import { writeSync } from 'node:fs'
import { isatty } from 'node:tty'

export interface Progress {
  update(count: number): void
  end(): void
}

const EVERY_MS = 100

/** A line that counts, for long work that a person waits for; silent where nobody looks. */
export function showProgress(what: string): Progress {
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

/** The same for work whose steps cannot be counted. */
export function showWorking(text: string): { end(): void } {
  if (!isatty(2)) return { end() {} }
  writeSync(2, `${text} …`)
  return { end: () => void writeSync(2, '\r\x1b[K') }
}
