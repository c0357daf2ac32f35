import type { Utterance } from '../runtimes/runtime.ts'

export interface Said {
  readonly at: number
  readonly text: string
}

/** The last that an agent said by itself, for people who look at it. Not stored: its program has the whole of it. */
export interface Spoken {
  add(utterance: Utterance, now: number): void
  /** What comes next is another answer. */
  endTurn(): void
  /** Oldest first. */
  all(): readonly Said[]
}

const MOST = 40
/** Of all of it; a large team is not to cost a large memory. */
const MOST_CHARACTERS = 24_000

export function createSpoken(): Spoken {
  let said: Said[] = []
  let isOpen = false
  return {
    add({ text, key }, now) {
      const last = said.at(-1)
      if (key === undefined && isOpen && last !== undefined) {
        said[said.length - 1] = { at: last.at, text: (last.text + text).slice(-MOST_CHARACTERS) }
      } else if (text.trim() !== '') said.push({ at: now, text: text.slice(-MOST_CHARACTERS) })
      isOpen = key === undefined
      said = said.slice(-MOST)
      let length = said.reduce((sum, one) => sum + one.text.length, 0)
      while (length > MOST_CHARACTERS && said.length > 1) length -= said.shift()!.text.length
    },
    endTurn() {
      isOpen = false
    },
    all: () => said,
  }
}
