/** Notices for an agent, delivered with the next response to a hook of its program. */
interface HookNotices {
  add(text: string): void
  /** The response to a hook that can carry notices; delivers them. */
  answerTo(hookEventName: string): object
  clear(): void
}

/** A turn may last for hours without a hook. */
const MOST = 50

export function createHookNotices(): HookNotices {
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
