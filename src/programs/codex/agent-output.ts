import type { SessionPort } from '../../runtimes/runtime.ts'

/**
 * Passes the agent's text to the engine, at once and in order, and saves up to where all of it was processed.
 */
export interface CodexOutput {
  /** `item` is its position in the thread. */
  say(text: string, key: string, item: string): void
}

interface CodexOutputOptions {
  readonly said: SessionPort['onText']
  /** Everything up to that item was processed. */
  keepUpTo(item: string): Promise<void>
  warn(fields: Record<string, unknown>, text: string): void
}

/**
 * An utterance can be open for long: its response waits for the end of the turn. The next one must not wait
 * for it, but the saved position must not pass it either, or a crash would lose it.
 */
export function createSpeech({ said, keepUpTo, warn }: CodexOutputOptions): CodexOutput {
  const open: { item: string; isDone: boolean }[] = []

  function finish(place: { isDone: boolean }) {
    place.isDone = true
    let last: string | undefined
    while (open[0]?.isDone) last = open.shift()!.item
    if (last === undefined) return
    keepUpTo(last).catch((error: unknown) =>
      warn({ err: error }, 'could not save the position in the conversation'),
    )
  }

  return {
    say(text, key, item) {
      const place = { item, isDone: false }
      open.push(place)
      said({ text, channel: 'api', key }).then(
        () => finish(place),
        // Not saved: after a restart it is repeated, and its key makes it act once.
        (error: unknown) => warn({ err: error, item }, "the agent's text could not be processed"),
      )
    },
  }
}
