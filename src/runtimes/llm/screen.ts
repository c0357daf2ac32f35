/** The end of what the model said, for people to look at, without what could drive a terminal. */
export interface Screen {
  add(text: string): void
  lines(count: number): string[]
}

const KEPT = 16 * 1024
const UNPRINTABLE = /[^\P{Cc}\n\t]/gu

export function createScreen(): Screen {
  let held = ''
  return {
    add(text) {
      held = (held + text.replace(UNPRINTABLE, '')).slice(-KEPT)
    },
    lines: (count) => held.trimEnd().split('\n').slice(-count),
  }
}
