/** Watches why a paste is blocked, reports changes, and ends once it no longer is. */
import type { PasteOptions } from '../../programs/program.ts'
import { guardPaste } from '../paste-guard.ts'
import { TmuxRefused } from './connection.ts'
import { ControlLost } from './control.ts'
import { takeSnapshot } from './pane-snapshot.ts'
import type { PasteTarget } from './paste-target.ts'
import { isEarlierTextSettling, submitIfPending } from './pending-input.ts'

/** Polling interval: no event tells that a person has emptied an input box. */
export const RECHECK_MS = 500

/**
 * Runs after a paste timed out and reports when it could be written, so that the engine need not retry and
 * record each attempt. Ends with the next paste, which checks for itself, and with the session.
 */
export async function watchBlockedPaste(target: PasteTarget, options: PasteOptions): Promise<void> {
  const watching = new AbortController()
  const { signal } = watching
  target.blockedWatch = watching
  let againMs: number | undefined = RECHECK_MS
  while (againMs !== undefined) {
    await target.waitForChange(againMs, signal)
    if (signal.aborted) return
    againMs = await recheck(target, options).catch((error: unknown) => {
      if (error instanceof ControlLost) return RECHECK_MS
      if (!(error instanceof TmuxRefused))
        target.log.warn({ pane: target.pane, err: error }, 'taking a snapshot failed')
      return undefined
    })
    if (signal.aborted) return
  }
  target.setBlocked(undefined)
}

/** Returns the delay to the next check; undefined if nothing blocks, or nothing will change. */
async function recheck(target: PasteTarget, options: PasteOptions): Promise<number | undefined> {
  // The engine learns by itself when the agent is idle again; other causes matter only then.
  if (options.state() !== 'idle') return RECHECK_MS
  const snapshot = await takeSnapshot(target, options)
  if (isEarlierTextSettling(target, snapshot.facts.state, options.lagMs ?? RECHECK_MS)) return RECHECK_MS
  if (await submitIfPending(target, snapshot)) return RECHECK_MS
  const decision = guardPaste(snapshot.facts)
  if (decision.write || decision.isFinal) return undefined
  target.setBlocked(decision.reason)
  return Math.min(RECHECK_MS, decision.againMs ?? RECHECK_MS)
}
