/** What stands in the way of a paste: told when it changes, and looked at until it is gone. */
import type { PasteManner } from '../../programs/program.ts'
import { guardPaste } from '../paste-guard.ts'
import { TmuxRefused } from './connection.ts'
import { ControlLost } from './control.ts'
import { lookAt } from './pane-snapshot.ts'
import type { PasteSite } from './paste-target.ts'
import { enterIfUnsent, isTakingEarlier } from './pending-input.ts'

/** While something waits and nothing stirs: nothing tells that a person has emptied an input box. */
export const LOOK_AGAIN_MS = 500

/**
 * For what could not be written in time: tells when it could be, so that it need not be tried again and again, with a
 * step on record each time. Ends with the next paste, which looks for itself, and with the session.
 */
export async function watchObstacle(site: PasteSite, manner: PasteManner): Promise<void> {
  const watching = new AbortController()
  const { signal } = watching
  site.watching = watching
  let againMs: number | undefined = LOOK_AGAIN_MS
  while (againMs !== undefined) {
    await site.stirred(againMs, signal)
    if (signal.aborted) return
    againMs = await lookAgain(site, manner).catch((error: unknown) => {
      if (error instanceof ControlLost) return LOOK_AGAIN_MS
      if (!(error instanceof TmuxRefused)) site.log.warn({ pane: site.pane, err: error }, 'a look failed')
      return undefined
    })
    if (signal.aborted) return
  }
  site.waits(undefined)
}

/** When to look again; undefined when nothing is in the way, or nothing will change that. */
async function lookAgain(site: PasteSite, manner: PasteManner): Promise<number | undefined> {
  // Whoever waits is told when it is idle again; only then what else there is matters.
  if (manner.state() !== 'idle') return LOOK_AGAIN_MS
  const look = await lookAt(site, manner)
  if (isTakingEarlier(site, look.facts.state, manner.lagMs ?? LOOK_AGAIN_MS)) return LOOK_AGAIN_MS
  if (await enterIfUnsent(site, look)) return LOOK_AGAIN_MS
  const decision = guardPaste(look.facts)
  if (decision.write || decision.isFinal) return undefined
  site.waits(decision.reason)
  return Math.min(LOOK_AGAIN_MS, decision.againMs ?? LOOK_AGAIN_MS)
}
