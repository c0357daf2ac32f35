import type { AgentText } from '../runtimes/runtime.ts'

export interface SaidText {
  readonly at: number
  readonly text: string
}

/** The recent text of an agent, for people who watch it. In memory only: its program has the whole conversation. */
export interface RecentOutput {
  add(utterance: AgentText, now: number): void
  /** The next piece of text begins a new entry. */
  endTurn(): void
  /** Oldest first. */
  all(): readonly SaidText[]
}

const MAX_ENTRIES = 40
/** Over all entries, so that a large team doesn't take much memory. */
const MAX_CHARACTERS = 24_000

export function createRecentOutput(): RecentOutput {
  let entries: SaidText[] = []
  let isOpen = false
  return {
    add({ text, key }, now) {
      const last = entries.at(-1)
      if (key === undefined && isOpen && last !== undefined) {
        entries[entries.length - 1] = { at: last.at, text: (last.text + text).slice(-MAX_CHARACTERS) }
      } else if (text.trim() !== '') entries.push({ at: now, text: text.slice(-MAX_CHARACTERS) })
      isOpen = key === undefined
      entries = entries.slice(-MAX_ENTRIES)
      let length = entries.reduce((sum, one) => sum + one.text.length, 0)
      while (length > MAX_CHARACTERS && entries.length > 1) length -= entries.shift()!.text.length
    },
    endTurn() {
      isOpen = false
    },
    all: () => entries,
  }
}
