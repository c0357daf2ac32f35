/** The end of an unbounded text, without sequences that control a terminal. */
export function createOutputTail(limit: number) {
  let held = ''
  return {
    add(text: string) {
      held = (held + printable(text.slice(-limit))).slice(-limit)
    },
    /** At most `count` lines. */
    lines(count = Number.POSITIVE_INFINITY): string[] {
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
