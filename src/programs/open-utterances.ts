import type { AgentText, SessionPort } from '../runtimes/runtime.ts'
import type { FilePosition, FollowerLog } from './line-follower.ts'

interface OpenUtterances {
  say(agentText: AgentText): void
  /** Before the oldest unanswered utterance; undefined if all are answered. */
  position(): FilePosition | undefined
}

interface OpenUtterancesOptions {
  readonly said: SessionPort['onText']
  readonly log: FollowerLog
  /** Position before the line that is being read. */
  place(): FilePosition | undefined
  /** The position has advanced. */
  onAnswered(): void
}

/**
 * Utterances read from a transcript and not answered yet. A response may wait for the end of the turn, which
 * is read from the same transcript, so reading must not wait for it. But the saved position must not pass it
 * either, or a crash would lose it.
 */
export function createOpenUtterances({
  said,
  log,
  place,
  onAnswered,
}: OpenUtterancesOptions): OpenUtterances {
  const open = new Set<{ before: FilePosition | undefined }>()
  return {
    say(agentText) {
      const one = { before: place() }
      open.add(one)
      said(agentText).then(
        () => {
          open.delete(one)
          onAnswered()
        },
        // The position stays before it: after a restart it is repeated, and its key makes it act once.
        (error: unknown) =>
          log.warn({ err: error, key: agentText.key }, "the agent's text could not be processed"),
      )
    },
    position: () => open.values().next().value?.before,
  }
}
