/** What an agent is told in passing, by the next answer to a hook of its program. */
export interface Notices {
  add(text: string): void
  /** The answer to a hook that can carry them; they are told with it. */
  answerTo(hookEventName: string): object
  clear(): void
}

/** A turn may last for hours without a hook. */
const MOST = 50

export function createNotices(): Notices {
  let waiting: ReadonlySet<string> = new Set()
  return {
    add(text) {
      waiting = new Set([...waiting, text].slice(-MOST))
    },
    answerTo(hookEventName) {
      if (waiting.size === 0) return {}
      const additionalContext = [...waiting].join('\n')
      waiting = new Set()
      return { hookSpecificOutput: { hookEventName, additionalContext } }
    },
    clear() {
      waiting = new Set()
    },
  }
}
