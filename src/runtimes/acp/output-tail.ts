/** The end of an unbounded text, without sequences that control a terminal. */
interface OutputTail {
  add(text: string): void
  /** At most `count` lines. */
  lines(count?: number): string[]
}

export function createOutputTail(limit: number): OutputTail {
  let held = ''
  return {
    add(text) {
      held = (held + printable(text.slice(-limit))).slice(-limit)
    },
    lines(count = Number.POSITIVE_INFINITY) {
      const lines = held.split('\n')
      if (lines.at(-1) === '') lines.pop()
      return lines.slice(-count)
    },
  }
}

/** Escape sequences and control characters, except newlines and tabs. */
const UNPRINTABLE = /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)?|.)|[^\P{Cc}\n\t]/gu

function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNPRINTABLE, '')
}
