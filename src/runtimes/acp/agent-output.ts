import type { Clock } from '../../base/clock.ts'
import type { SessionPort } from '../runtime.ts'

/** Number of unprocessed pieces above which the agent is slowed down. */
const MAX_UNPROCESSED = 100
const MAX_HOLD_MS = 50

/** Passes the agent's text on, piece by piece. */
export function createAcpOutput(
  onText: SessionPort['onText'],
  clock: Clock,
  onError: (error: unknown) => void,
) {
  let unprocessed = 0
  let lastMessage: string | undefined
  let hasSpoken = false
  let isPaused = false
  let release = () => {}

  return {
    /** `message`: the id of the agent's message, if it sends one. */
    say(text: string, message: string | undefined) {
      if (text === '') return
      const isAnother = message !== undefined && lastMessage !== undefined && message !== lastMessage
      const gap = hasSpoken && (isPaused || isAnother) ? '\n\n' : ''
      hasSpoken = true
      isPaused = false
      lastMessage = message
      unprocessed += 1
      onText({ text: gap + text, channel: 'api' })
        // Text that could not be processed must not block later text.
        .catch(onError)
        .finally(() => {
          unprocessed -= 1
          if (unprocessed < MAX_UNPROCESSED) release()
        })
    },
    /** Later text belongs to another message, and must not run into this one. */
    pause() {
      isPaused = true
    },
    /**
     * Pending while too much text is unprocessed, so that a flood waits in the agent's own pipe. Never for
     * long: the response to a command may wait for the end of the turn, which arrives through the same pipe.
     */
    hold(): Promise<void> | undefined {
      if (unprocessed < MAX_UNPROCESSED) return undefined
      return new Promise((resolve) => {
        const cancel = clock.after(MAX_HOLD_MS, resolve)
        release = () => {
          cancel()
          resolve()
        }
      })
    },
  }
}
