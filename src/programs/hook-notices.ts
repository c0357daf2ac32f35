/** A turn may last for hours without a hook. */
const MAX_NOTICES = 50

/** Notices for an agent, delivered with the next response to a hook of its program. */
export function createHookNotices() {
  let waiting: ReadonlySet<string> = new Set()
  return {
    add(text: string) {
      waiting = new Set([...waiting, text].slice(-MAX_NOTICES))
    },
    /** The response to a hook that can carry notices; delivers them. */
    responseTo(hookEventName: string): object {
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
