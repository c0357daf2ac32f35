/** A longer answer is put into a file by the program, and the model is shown only its beginning. */
export const LONGEST_ANSWER = 9000

/** A turn of the agent's has ended, and its Stop hook waits for our answer: text in it begins the next turn. */
export interface TurnEnd {
  readonly isOpen: boolean
  /** It stays open until it is taken or closed: whoever says so is about to do one of them. */
  keep(): void
  /** Gives the text as the answer. False when it is too late, or too long. */
  take(text: string): boolean
  /** Answers nothing, so that the program ends the turn. */
  close(): void
}

export interface TurnEndHold {
  readonly end: TurnEnd
  /** Undefined when nothing was given in time. */
  readonly answer: Promise<object | undefined>
}

/** Holds the hook's answer back for a moment, for the messages that wait. */
export function holdTurnEnd(holdMs: number, gone: AbortSignal): TurnEndHold {
  const { promise, resolve } = Promise.withResolvers<object | undefined>()
  let isOpen = !gone.aborted
  const timer = setTimeout(() => close(), holdMs)

  function settle(answer: object | undefined) {
    if (!isOpen) return
    isOpen = false
    clearTimeout(timer)
    gone.removeEventListener('abort', close)
    resolve(answer)
  }
  const close = () => settle(undefined)

  gone.addEventListener('abort', close)
  if (gone.aborted) resolve(undefined)
  return {
    end: {
      get isOpen() {
        return isOpen
      },
      keep: () => clearTimeout(timer),
      take(text) {
        if (!isOpen || Buffer.byteLength(text) > LONGEST_ANSWER) return false
        // Not `decision: block`: its reason is put before the model twice, as the user's words and as a hook's error.
        settle({ hookSpecificOutput: { hookEventName: 'Stop', additionalContext: text } })
        return true
      },
      close,
    },
    answer: promise,
  }
}
