/** A progress bar on stderr. */
export interface Progress {
  at(done: number, note?: string): void
  end(): void
}

const WIDTH = 30
const EVERY_MS = 200

export function startProgress(name: string, total: number): Progress {
  const isTerminal = process.stderr.isTTY === true
  let drawnAt = 0
  let last = ''
  function draw(done: number, note: string) {
    const filled = Math.round((WIDTH * done) / total)
    last = `${name.padEnd(24)} [${'#'.repeat(filled)}${'.'.repeat(WIDTH - filled)}] ${done}/${total} ${note}`
    if (isTerminal) process.stderr.write(`\r\u001b[K${last}`)
  }
  return {
    at(done, note = '') {
      const now = Date.now()
      if (now - drawnAt < EVERY_MS && done < total) return
      drawnAt = now
      draw(done, note)
    },
    end() {
      // Without a terminal, a line at the end is enough.
      process.stderr.write(isTerminal ? '\n' : `${last}\n`)
    },
  }
}
