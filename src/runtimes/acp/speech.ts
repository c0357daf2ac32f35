import type { SessionPort } from '../runtime.ts'

/** As much as may wait to be heard before nothing more is read from the agent. */
const PENDING_LIMIT = 1 << 20

/** Hands the agent's words on in order, one piece at a time; what comes meanwhile becomes the next piece. */
export interface Speech {
  /** `message`: which of the agent's messages it belongs to, where the agent says so. */
  say(text: string, message: string | undefined): void
  /** The next words are another message: words of two messages must not run into one. */
  pause(): void
  /** Resolves when all that was said so far has been heard. */
  heard(): Promise<void>
  /** Pending while too much waits to be heard. */
  hold(): Promise<void> | undefined
}

export function createSpeech(said: SessionPort['said'], onError: (error: unknown) => void): Speech {
  let pending = ''
  let running: Promise<void> | undefined
  let lastMessage: string | undefined
  let hasSpoken = false
  let isPaused = false

  async function run(): Promise<void> {
    while (pending !== '') {
      const text = pending
      pending = ''
      try {
        await said({ text, channel: 'api' })
      } catch (error) {
        // Words that nobody could take must not keep the later ones from being heard.
        onError(error)
      }
    }
    running = undefined
  }

  return {
    say(text, message) {
      if (text === '') return
      const isAnother = message !== undefined && lastMessage !== undefined && message !== lastMessage
      if (hasSpoken && (isPaused || isAnother)) pending += '\n\n'
      pending += text
      hasSpoken = true
      isPaused = false
      lastMessage = message
      running ??= run()
    },
    pause() {
      isPaused = true
    },
    async heard() {
      while (running !== undefined) await running
    },
    hold: () => (pending.length > PENDING_LIMIT ? running : undefined),
  }
}
