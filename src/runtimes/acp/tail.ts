/** The end of a text that may be endless, without what could drive a terminal. */
export interface Tail {
  add(text: string): void
  /** At most that many lines, or all that is held. */
  lines(count?: number): string[]
}

export function createTail(limit: number): Tail {
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

/** Escape sequences and control characters other than line ends and tabs. */
const UNPRINTABLE = /\u001B(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001B]*(?:\u0007|\u001B\\)?|.)|[^\P{Cc}\n\t]/gu

function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(UNPRINTABLE, '')
}
