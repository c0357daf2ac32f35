import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionPort } from '../../runtimes/runtime.ts'
import type { OpenCodePart } from './records.ts'

const RETRY_MS = 1_000
/**
 * A text appears again when its message is updated, and when messages are read again after a lost connection.
 */
const REMEMBERED = 1_000

/**
 * Passes the agent's text to the engine at once and in order, and saves up to where all of it was processed.
 * An utterance can be open for long: its response waits for the end of the turn. The next one must not wait
 * for it, but the saved position must not pass it either, or a crash would lose it.
 */
export function createSpeech(port: Pick<SessionPort, 'onText'>, keep: (messageId: string) => Promise<void>) {
  const known = new Set<string>()
  const open: { readonly messageId: string; isDone: boolean }[] = []
  const closing = new AbortController()

  async function insist(act: () => Promise<void>) {
    while (!closing.signal.aborted) {
      try {
        return await act()
      } catch {
        // The store is unavailable for a while; repeated text acts once.
        await sleep(RETRY_MS, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }

  async function say({ id, text, messageID: messageId }: OpenCodePart) {
    const place = { messageId, isDone: false }
    open.push(place)
    await insist(() => port.onText({ text: text ?? '', channel: 'api', key: id }))
    if (closing.signal.aborted) return
    place.isDone = true
    let last: string | undefined
    while (open[0]?.isDone) last = open.shift()!.messageId
    if (last !== undefined) await insist(() => keep(last))
  }

  return {
    add(part: OpenCodePart) {
      if (known.has(part.id)) return
      known.add(part.id)
      if (known.size > REMEMBERED) known.delete(known.values().next().value!)
      void say(part)
    },
    close: () => closing.abort(),
  }
}
