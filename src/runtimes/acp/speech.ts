import type { Clock } from '../../model/clock.ts'
import type { SessionPort } from '../runtime.ts'

/** So many pieces may be on their way to the engine before the agent is slowed down. */
const UNHEARD = 100
const SLOW_MS = 50

/** Hands the agent's words on, piece by piece, as they come. */
export interface Speech {
  /** `message`: which of the agent's messages it belongs to, where the agent says so. */
  say(text: string, message: string | undefined): void
  /** The next words are another message: words of two messages must not run into one. */
  pause(): void
  /**
   * Pending while too much was said and not dealt with, so that a flood waits in the agent's own pipe. Never for long:
   * an answer to what was said may itself wait for the turn to end, and its end comes by the same pipe.
   */
  hold(): Promise<void> | undefined
}

export function createSpeech(
  said: SessionPort['said'],
  clock: Clock,
  onError: (error: unknown) => void,
): Speech {
  let unheard = 0
  let lastMessage: string | undefined
  let hasSpoken = false
  let isPaused = false
  let goOn = () => {}

  return {
    say(text, message) {
      if (text === '') return
      const isAnother = message !== undefined && lastMessage !== undefined && message !== lastMessage
      const gap = hasSpoken && (isPaused || isAnother) ? '\n\n' : ''
      hasSpoken = true
      isPaused = false
      lastMessage = message
      unheard += 1
      said({ text: gap + text, channel: 'api' })
        // Words that nobody could take must not keep the later ones from being heard.
        .catch(onError)
        .finally(() => {
          unheard -= 1
          if (unheard < UNHEARD) goOn()
        })
    },
    pause() {
      isPaused = true
    },
    hold() {
      if (unheard < UNHEARD) return undefined
      return new Promise((resolve) => {
        const cancel = clock.after(SLOW_MS, resolve)
        goOn = () => {
          cancel()
          resolve()
        }
      })
    },
  }
}
