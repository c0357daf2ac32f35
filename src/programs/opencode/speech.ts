import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionPort } from '../../runtimes/runtime.ts'
import type { Part } from './records.ts'

const RETRY_MS = 1_000
/** A text is met again when its message is updated, and when messages are read again after a lost connection. */
const REMEMBERED = 1_000

/** Says the agent's words to the engine one after the other, and keeps how far that came. */
export function createSpeech(port: Pick<SessionPort, 'said'>, keep: (messageId: string) => Promise<void>) {
  const known = new Set<string>()
  const closing = new AbortController()
  let queue = Promise.resolve()

  async function say(part: Part) {
    while (!closing.signal.aborted) {
      try {
        await port.said({ text: part.text ?? '', channel: 'api', key: part.id })
        await keep(part.messageID)
        return
      } catch {
        // The store is away for a while; what was said twice acts once.
        await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }

  return {
    add(part: Part) {
      if (known.has(part.id)) return
      known.add(part.id)
      if (known.size > REMEMBERED) known.delete(known.values().next().value!)
      queue = queue.then(() => say(part))
    },
    close: () => closing.abort(),
  }
}
