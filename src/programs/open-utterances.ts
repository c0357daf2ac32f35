import type { SessionPort, Utterance } from '../runtimes/runtime.ts'
import type { FilePosition, FollowerLog } from './line-follower.ts'

export interface OpenUtterances {
  say(utterance: Utterance): void
  /** Before the oldest that is not answered; undefined when all are. */
  position(): FilePosition | undefined
}

export interface OpenUtterancesOptions {
  readonly said: SessionPort['said']
  readonly log: FollowerLog
  /** Before the line that is being read. */
  place(): FilePosition | undefined
  /** The position has moved on. */
  onAnswered(): void
}

/**
 * What was read in a transcript and is not answered yet. The answer may wait for the end of the turn, and the end of the
 * turn is read in the same transcript: reading must not wait for it. But the position must not pass it either, or a crash
 * would lose it.
 */
export function createOpenUtterances({
  said,
  log,
  place,
  onAnswered,
}: OpenUtterancesOptions): OpenUtterances {
  const open = new Set<{ before: FilePosition | undefined }>()
  return {
    say(utterance) {
      const one = { before: place() }
      open.add(one)
      said(utterance).then(
        () => {
          open.delete(one)
          onAnswered()
        },
        // The position stays before it: it is said again after a restart, and acts once by its key.
        (error: unknown) => log.warn({ err: error, key: utterance.key }, 'what the agent said was not taken'),
      )
    },
    position: () => open.values().next().value?.before,
  }
}
