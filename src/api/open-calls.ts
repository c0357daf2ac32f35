import type { ServerResponse } from 'node:http'
import { AppError } from '../base/errors.ts'
import type { Tokens } from '../commands/tokens.ts'
import type { Store } from '../store/store.ts'
import type { ApiCaller } from './authenticate.ts'
import { unauthenticated } from './http-response.ts'

/** A long-lived call: a stream, a long poll, or a hook that waits for a person. */
export interface OpenCall {
  /** Aborts when the caller disconnects, its token is revoked or the service stops; the last two with an AppError. */
  readonly signal: AbortSignal
  done(): void
}

export const CALL_KINDS = ['events', 'deliveries', 'poll', 'hook'] as const
type CallKind = (typeof CALL_KINDS)[number]

/** Tracks all long-lived calls: revoking a token ends its calls at once, and a stopping service ends all of them. */
export interface OpenCalls {
  open(kind: CallKind, caller: ApiCaller, outgoing: ServerResponse): OpenCall
  count(kind: CallKind): number
  close(): void
}

interface TrackedCall {
  kind: CallKind
  caller: ApiCaller
  end(reason: AppError): void
}

/** More than any program needs. Each open call costs a socket and a callback on every commit. */
const MOST_PER_TOKEN = 64

function tooManyOpen(): AppError {
  return new AppError(
    'RATE_LIMITED',
    `More than ${MOST_PER_TOKEN} streams, long polls and hooks are open with this token`,
    {
      hint: 'Close the ones you no longer need.',
    },
  )
}

const LONGEST_TIMER_MS = 2 ** 31 - 1

export function createOpenCalls(store: Store, tokens: Tokens, now: () => number): OpenCalls {
  const tracked = new Set<TrackedCall>()
  let stopping: AppError | undefined

  const stopListening = store.onCommit((entries) => {
    if (tracked.size === 0 || !entries.some((entry) => entry.type === 'token.revoked')) return
    for (const call of [...tracked]) {
      if (tokens.authenticate(call.caller.token) === undefined)
        call.end(unauthenticated('The token was revoked'))
    }
  })

  function count(which: (call: TrackedCall) => boolean): number {
    let found = 0
    for (const call of tracked) if (which(call)) found += 1
    return found
  }

  return {
    open(kind, caller, outgoing) {
      if (count((call) => call.caller.token === caller.token) >= MOST_PER_TOKEN) throw tooManyOpen()
      const controller = new AbortController()
      const call: TrackedCall = { kind, caller, end: (reason) => controller.abort(reason) }
      const gone = () => controller.abort()
      outgoing.once('close', gone)
      tracked.add(call)
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
          tracked.delete(call)
        },
      }
    },
    count: (kind) => count((call) => call.kind === kind),
    close() {
      stopListening()
      stopping = new AppError('SERVICE_STOPPING', 'The service is shutting down', {
        hint: 'Reconnect when it is back.',
      })
      for (const call of [...tracked]) call.end(stopping)
    },
  }
}
