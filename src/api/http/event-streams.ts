/** Responses that stay open: event streams, long polls and hooks, and the feed of audit entries for them. */
import type { ServerResponse } from 'node:http'
import type { Tokens } from '../../agents/tokens.ts'
import { formatLine } from '../../audit/line.ts'
import type { ReadEntry } from '../../audit/store.ts'
import type { Principal } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import type { Log } from '../../base/log.ts'
import type { Store } from '../../store/store.ts'
import type { AuditEntryAnswer } from '../contract.ts'
import type { ApiCaller } from './authenticate.ts'
import { drained, SECURITY_HEADERS, unauthenticated } from './exchange.ts'

/** A long-lived call: a stream, a long poll, or a hook that waits for a person. */
interface OpenCall {
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

/** A stream of server-sent events to one reader. */
interface EventStream {
  readonly signal: AbortSignal
  /** Returns false when the reader lags behind: then await `drained` before sending more. */
  send(text: string): boolean
  drained(): Promise<void>
  end(): void
}

/** Lets both sides, and proxies between them, notice a dead connection. */
const HEARTBEAT_MS = 15_000
const HEARTBEAT = ': still here\n\n'
/** The delay before a browser's EventSource reconnects. */
const RETRY = 'retry: 1000\n'

/** `from`: the id to resume after when the connection breaks before the first event. */
export function startEventStream(outgoing: ServerResponse, call: OpenCall, from?: number): EventStream {
  outgoing.writeHead(200, {
    'content-type': 'text/event-stream',
    'x-accel-buffering': 'no',
    ...SECURITY_HEADERS,
  })
  outgoing.write(from === undefined ? `${RETRY}\n` : `${RETRY}id: ${from}\n\n`)
  const heartbeat = setInterval(() => {
    if (!outgoing.writableNeedDrain) outgoing.write(HEARTBEAT)
  }, HEARTBEAT_MS)
  heartbeat.unref()
  return {
    signal: call.signal,
    send: (text) => outgoing.write(text),
    drained: () => drained(outgoing, call.signal),
    end() {
      clearInterval(heartbeat)
      call.done()
      outgoing.end()
    },
  }
}

export function formatEvent(event: string, id: string | number, json: string): string {
  return `event: ${event}\nid: ${id}\ndata: ${json}\n\n`
}

/** Ends a stream after an error. The reader reconnects and then gets an error response. */
export function abortStream(log: Log, outgoing: ServerResponse, error: unknown) {
  if (!outgoing.destroyed) log.error({ err: error }, 'an event stream failed')
  outgoing.destroy()
}

/** Pushes new audit entries to any number of readers and serializes each entry once. */
export interface Feed {
  /** The sequence number of the last entry committed since the service started; 0 before the first. */
  latest(): number
  subscribe(reader: FeedReader): () => void
  close(): void
}

type FeedReader = (events: readonly FeedEvent[]) => void

export interface FeedEvent {
  readonly entry: ReadEntry
  /** The entry as a server-sent event. */
  readonly text: string
}

export function createFeed(store: Store, log: Log): Feed {
  const readers = new Set<FeedReader>()
  let latest = 0
  const stop = store.onCommit((entries) => {
    latest = entries.at(-1)!.seq
    if (readers.size === 0) return
    const events = entries.map(feedEvent)
    for (const reader of [...readers]) {
      try {
        reader(events)
      } catch (error) {
        // A failing reader must affect neither the other readers nor the commit.
        log.error({ err: error }, 'could not send an event')
      }
    }
  })
  return {
    latest: () => latest,
    subscribe(reader) {
      readers.add(reader)
      return () => void readers.delete(reader)
    },
    close: stop,
  }
}

export function feedEvent(entry: ReadEntry): FeedEvent {
  let text: string | undefined
  return {
    entry,
    get text() {
      // Built on demand: some readers use another format.
      text ??= formatEvent(entry.type, entry.seq, JSON.stringify(wireEntry(entry)))
      return text
    },
  }
}

export function wireEntry(entry: ReadEntry): AuditEntryAnswer {
  const { seq, chain, at, type, class: visibility, actor, subject, text, confidence, data, hash } = entry
  return {
    seq,
    chain,
    at,
    type,
    class: visibility,
    actor,
    ...(subject === undefined ? {} : { subject }),
    text,
    ...(confidence === undefined ? {} : { confidence }),
    data: data ?? {},
    hash,
    line: formatLine(entry),
  }
}

/** People see every entry; agents see public ones and internal ones they take part in. `streamAudit` is the same in SQL. */
export function mayKnow(principal: Principal, name: string, entry: FeedEvent['entry']): boolean {
  if (principal.kind !== 'agent' || entry.class === 'public') return true
  return entry.class === 'internal' && (entry.actor === name || entry.subject === name)
}
