/** The program moves a longer response into a file, and shows the model only its beginning. */
export const LONGEST_ANSWER = 9000

/**
 * A turn of the agent has ended, and its Stop hook waits for our response: text in it starts the next turn.
 */
export interface OpenTurnEnd {
  readonly isOpen: boolean
  /** Keeps it open until it is taken or closed, which the caller is about to do. */
  keep(): void
  /** Responds with the text. False if it is too late, or too long. */
  take(text: string): boolean
  /** Responds with nothing, so that the program ends the turn. */
  close(): void
}

interface TurnEndHold {
  readonly end: OpenTurnEnd
  /** Undefined if nothing was given in time. */
  readonly answer: Promise<object | undefined>
}

/** Holds the hook's response for a moment, for waiting messages. */
export function holdTurnEnd(holdMs: number, signal: AbortSignal): TurnEndHold {
  const { promise, resolve } = Promise.withResolvers<object | undefined>()
  let isOpen = !signal.aborted
  const timer = setTimeout(() => close(), holdMs)

  function settle(answer: object | undefined) {
    if (!isOpen) return
    isOpen = false
    clearTimeout(timer)
    signal.removeEventListener('abort', close)
    resolve(answer)
  }
  const close = () => settle(undefined)

  signal.addEventListener('abort', close)
  if (signal.aborted) resolve(undefined)
  return {
    end: {
      get isOpen() {
        return isOpen
      },
      keep: () => clearTimeout(timer),
      take(text) {
        if (!isOpen || Buffer.byteLength(text) > LONGEST_ANSWER) return false
        // Not `decision: block`: the model would see its reason twice, as user text and as a hook error.
        settle({ hookSpecificOutput: { hookEventName: 'Stop', additionalContext: text } })
        return true
      },
      close,
    },
    answer: promise,
  }
}
