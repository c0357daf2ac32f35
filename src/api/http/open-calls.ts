import type { ServerResponse } from 'node:http'
import type { Tokens } from '../../agents/tokens.ts'
import { AppError } from '../../base/errors.ts'
import type { Store } from '../../store/store.ts'
import { type Caller, unauthenticated } from './gate.ts'

/** A call that stays open: a stream, a long poll, a hook that waits for a person. */
export interface OpenCall {
  /** Aborted when the caller is gone, its token was revoked, or the service stops; the last two with an AppError. */
  readonly signal: AbortSignal
  done(): void
}

export const CALL_KINDS = ['events', 'deliveries', 'poll', 'hook'] as const
type CallKind = (typeof CALL_KINDS)[number]

/** All calls that stay open, so that a revoked token ends its own at once and a stopping service ends all. */
export interface OpenCalls {
  open(kind: CallKind, caller: Caller, outgoing: ServerResponse): OpenCall
  count(kind: CallKind): number
  close(): void
}

interface Kept {
  kind: CallKind
  caller: Caller
  end(reason: AppError): void
}

/** More than any program needs; each one costs a socket and a place in every announcement. */
const MOST_PER_TOKEN = 64

function tooManyOpen(): AppError {
  return new AppError(
    'RATE_LIMITED',
    `More than ${MOST_PER_TOKEN} streams, long polls and hooks are open with this token`,
    {
      hint: 'Close those that nobody waits for any more.',
    },
  )
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

export function createOpenCalls(store: Store, tokens: Tokens, now: () => number): OpenCalls {
  const kept = new Set<Kept>()
  let stopping: AppError | undefined

  const stopListening = store.onCommit((entries) => {
    if (kept.size === 0 || !entries.some((entry) => entry.type === 'token.revoked')) return
    for (const call of [...kept]) {
      if (tokens.authenticate(call.caller.token) === undefined)
        call.end(unauthenticated('The token was revoked'))
    }
  })

  function count(which: (call: Kept) => boolean): number {
    let found = 0
    for (const call of kept) if (which(call)) found += 1
    return found
  }

  return {
    open(kind, caller, outgoing) {
      if (count((call) => call.caller.token === caller.token) >= MOST_PER_TOKEN) throw tooManyOpen()
      const controller = new AbortController()
      const call: Kept = { kind, caller, end: (reason) => controller.abort(reason) }
      const gone = () => controller.abort()
      outgoing.once('close', gone)
      kept.add(call)
      const endsAt = tokens.endsAt(caller.token)
      const left = endsAt === undefined ? undefined : Math.min(endsAt - now(), LONGEST_TIMER_MS)
      const timer =
        left === undefined
          ? undefined
          : setTimeout(() => call.end(unauthenticated('The session ended')), left)
      timer?.unref()
      if (stopping !== undefined) call.end(stopping)
      else if (outgoing.destroyed) gone()
      return {
        signal: controller.signal,
        done() {
          clearTimeout(timer)
          outgoing.off('close', gone)
          kept.delete(call)
        },
      }
    },
    count: (kind) => count((call) => call.kind === kind),
    close() {
      stopListening()
      stopping = new AppError('SERVICE_STOPPING', 'The service is shutting down', {
        hint: 'Connect again when it is back.',
      })
      for (const call of [...kept]) call.end(stopping)
    },
  }
}
