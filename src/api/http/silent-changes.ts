import { setTimeout } from 'node:timers/promises'
import { AppError } from '../../base/errors.ts'
import type { Call, Desk } from './call.ts'
import { formatEvent, startEventStream } from './event-stream.ts'
import { isInTeam } from './follow.ts'

/** How often it is looked, at most. */
const CALM_MS = 500

/**
 * Says when something changed that the audit does not tell of: `mark` is then another one. It is asked for only when
 * something was written. Begins with a word, so that nothing falls between the last look and the stream.
 */
export async function streamChanges(desk: Desk, call: Call, mark: () => Promise<string>): Promise<void> {
  const { store } = desk.engine
  const stream = startEventStream(call.outgoing, desk.openCalls.open('events', call.caller, call.outgoing))
  let isDue = false
  let wake = () => {}
  const due = () => {
    isDue = true
    wake()
  }
  const stops = [store.onWrite(due), store.onOthers(due)]
  stream.signal.addEventListener('abort', due, { once: true })
  let count = 0
  let last: string | undefined
  try {
    while (!stream.signal.aborted && isInTeam(desk, call)) {
      isDue = false
      const now = await mark()
      if (now !== last) stream.send(formatEvent('changed', ++count, '{"changed":true}'))
      last = now
      await stream.drained()
      await setTimeout(CALM_MS, undefined, { signal: stream.signal }).catch(() => {})
      if (isDue) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } catch (error) {
    // Who may no longer know is not told why.
    if (!(error instanceof AppError)) desk.engine.log.warn({ err: error }, 'changes could not be told')
  } finally {
    for (const stop of stops) stop()
    stream.end()
  }
}
