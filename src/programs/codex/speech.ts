import type { SessionPort } from '../../runtimes/runtime.ts'

/** Tells the engine what the agent says, at once and in order, and keeps how far all of it was acted upon. */
export interface Speech {
  /** `item` names its place in the thread. */
  say(text: string, key: string, item: string): void
}

export interface SpeechOptions {
  readonly said: SessionPort['said']
  /** Everything up to that item was acted upon. */
  keepUpTo(item: string): Promise<void>
  warn(fields: Record<string, unknown>, text: string): void
}

/**
 * An utterance can be open for long: its answer waits for the end of the turn. The next one must not wait for it, but
 * the place kept must not pass it either, or a crash would lose it.
 */
export function createSpeech({ said, keepUpTo, warn }: SpeechOptions): Speech {
  const open: { item: string; isDone: boolean }[] = []

  function finish(place: { isDone: boolean }) {
    place.isDone = true
    let last: string | undefined
    while (open[0]?.isDone) last = open.shift()!.item
    if (last === undefined) return
    keepUpTo(last).catch((error: unknown) =>
      warn({ err: error }, 'the place in the conversation was not kept'),
    )
  }

  return {
    say(text, key, item) {
      const place = { item, isDone: false }
      open.push(place)
      said({ text, channel: 'api', key }).then(
        () => finish(place),
        // Not kept: it is said again after a restart, and acts once by its key.
        (error: unknown) => warn({ err: error, item }, 'what the agent said was not taken'),
      )
    },
  }
}
