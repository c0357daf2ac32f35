import { randomUUID } from 'node:crypto'
import type { AuditEntry } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { Log } from '../base/log.ts'
import type { Store, Tx } from '../store/store.ts'
import { eventOf, isWanted } from './event.ts'
import { noteDeath, noteDropped } from './record.ts'
import { createSender, type Posted, retryDelay, type SenderOptions } from './send.ts'
import {
  addToQueue,
  clearQueue,
  countAttempt,
  findWebhook,
  firstInQueue,
  keepWebhook,
  lastSeq,
  nextEntries,
  type QueuedRow,
  readEntry,
  shortenQueue,
  takeFromQueue,
  type WebhookRow,
} from './store.ts'

interface EndpointOptions extends SenderOptions {
  row: WebhookRow | undefined
  store: Store
  log: Log
  random(): number
}

/** An endpoint without a success for this long is dead. */
const DAY_MS = 24 * 3600_000
/** Beyond this many waiting events, the oldest are dropped and counted. */
const MOST_PENDING = 1000
/** Tries for an event that the receiver rejects, so that it doesn't hold up the others for a day. */
const REJECTIONS = 3
const PAGE = 500
/** How often the position in the audit is stored while no entry is wanted. */
const NOTE_EVERY = 10_000
/** Retry after a full disk or a lost database. */
const TRY_AGAIN_MS = 5000

/**
 * Posts events to one address, in order and one at a time; other addresses don't wait for it. An event stays in the queue
 * until it was sent, so that a crash loses none; at worst it is sent again with the same id.
 */
export function createEndpoint(options: EndpointOptions) {
  const { config, store, clock, log, random } = options
  const { name } = config
  const chain = store.daemon
  const closing = new AbortController()
  const sender = createSender(options, closing.signal)
  let row = options.row
  /** All wanted entries up to this one are in the queue; the stored position may lag behind. */
  let seen = row?.seen ?? 0
  let running: Promise<void> | undefined
  let wanted = false
  let cancelLater: (() => void) | undefined

  /** Changes the stored row, which is authoritative. */
  async function change(how: (tx: Tx, before: WebhookRow) => Promise<Partial<WebhookRow>>) {
    const after = await store.write(async (tx) => {
      const before = (await findWebhook(tx, chain, name)) ?? row!
      const next = { ...before, ...(await how(tx, before)) }
      await keepWebhook(tx, chain, next)
      return next
    })
    row = after
    seen = Math.max(seen, after.seen)
  }

  async function open() {
    const target = sender.target()
    // A new webhook begins with the next entry.
    const from = row?.state === 'active' ? row.seen : await lastSeq(store, chain)
    if (row !== undefined && row.target === target) return
    row = { ...FRESH, sent: row?.sent ?? 0, dropped: row?.dropped ?? 0, name, target, seen: from }
    seen = from
    await change(async () => ({}))
  }

  /** Adds wanted entries to the queue, up to the end of the audit. */
  async function catchUp() {
    for (let page = PAGE; page === PAGE; ) {
      const entries = await nextEntries(store, chain, seen, PAGE)
      page = entries.length
      if (page === 0) return
      const last = entries.at(-1)!.seq
      const news = entries.filter((entry) => isWanted(config.events, entry))
      if (news.length === 0 && last - row!.seen < NOTE_EVERY) {
        seen = last
        continue
      }
      await change(async (tx, before) => {
        for (const { seq } of news) await addToQueue(tx, chain, name, seq)
        const over = await shortenQueue(tx, chain, name, MOST_PENDING)
        if (over > 0 && before.dropped === 0) noteDropped(tx, name, `more than ${MOST_PENDING} events wait`)
        return { seen: last, dropped: before.dropped + over }
      })
    }
  }

  function work() {
    wanted = true
    running ??= workAll().finally(() => {
      running = undefined
    })
  }

  async function workAll() {
    cancelLater?.()
    try {
      do {
        wanted = false
        if (row!.state === 'dead') return
        await catchUp()
        await sendAll()
      } while (wanted && !closing.signal.aborted)
    } catch (error) {
      if (closing.signal.aborted) return
      log.error({ err: error, webhook: name }, 'a webhook could not go on; trying again')
      workLater(TRY_AGAIN_MS)
    }
  }

  function workLater(ms: number) {
    cancelLater?.()
    cancelLater = clock.after(Math.min(ms, 2 ** 31 - 1), work)
  }

  async function sendAll() {
    while (!closing.signal.aborted && row!.state === 'active') {
      const wait = (row!.not_before ?? 0) - clock.now()
      if (wait > 0) return workLater(wait)
      const first = await firstInQueue(store, chain, name)
      if (first === undefined) return
      const found = await readEntry(store, chain, first.seq)
      const posted: Posted =
        found === undefined
          ? { outcome: 'rejected', error: 'it is no longer in the audit' }
          : await sender.send(eventOf(found))
      if (closing.signal.aborted) return
      await settle(first, posted)
    }
  }

  async function settle({ seq, attempts }: QueuedRow, posted: Posted) {
    if (posted.outcome === 'sent') {
      await change(async (tx, before) => {
        await takeFromQueue(tx, chain, name, seq)
        return { ...WELL, sent: before.sent + 1, sent_at: tx.now }
      })
      return
    }
    const { outcome, error, retryAfterMs = 0 } = posted
    if (row!.failures === 0) log.warn({ webhook: name, error }, 'a webhook could not be sent')
    await change(async (tx, before) => {
      const failing_since = before.failing_since ?? tx.now
      const failures = before.failures + 1
      if (outcome === 'gone' || tx.now - failing_since >= DAY_MS) {
        return { ...(await die(tx, before, error)), failures, failing_since }
      }
      const isUnwanted = outcome === 'rejected' && attempts + 1 >= REJECTIONS
      if (isUnwanted) {
        await takeFromQueue(tx, chain, name, seq)
        noteDropped(tx, name, `entry ${seq} was refused ${REJECTIONS} times: ${error}`)
      } else await countAttempt(tx, chain, name, seq)
      const delay = Math.max(retryAfterMs, retryDelay(failures, random))
      return {
        ...{ failing_since, failures, last_error: error, not_before: tx.now + delay },
        dropped: before.dropped + (isUnwanted ? 1 : 0),
      }
    })
  }

  /** Marks the endpoint as dead, drops its queue, and puts a notice into the inbox. */
  async function die(tx: Tx, before: WebhookRow, error: string): Promise<Partial<WebhookRow>> {
    const lost = await clearQueue(tx, chain, name)
    await noteDeath(tx, name, error, lost)
    return { state: 'dead', last_error: error, not_before: null, dropped: before.dropped + lost }
  }

  return {
    name,
    config,
    row: () => row!,
    shown: sender.shown,
    open,
    /** Entries were committed. */
    heard(entries: readonly AuditEntry[]) {
      if (row?.state !== 'active' || closing.signal.aborted) return
      if (entries.some((one) => isWanted(config.events, one))) work()
      else if (running === undefined && entries[0]!.seq === seen + 1) seen = entries.at(-1)!.seq
    },
    work,
    /** Sends a test event. Its success revives a dead endpoint. */
    async test(): Promise<Posted> {
      const posted = await sender.send({
        id: `evt_test_${randomUUID().replaceAll('-', '')}`,
        type: 'webhook.test',
        at: new Date(clock.now()).toISOString(),
        actor: ORCHESTRATOR,
        text: `A test of the webhook ${name}`,
        data: { webhook: name },
      })
      if (posted.outcome !== 'sent') return posted
      const head = await lastSeq(store, chain)
      await change(async (_, before) => ({
        ...WELL,
        state: 'active',
        seen: before.state === 'dead' ? head : before.seen,
      }))
      work()
      return posted
    },
    async close() {
      closing.abort()
      cancelLater?.()
      await running
      if (row?.state === 'active' && seen > row.seen) {
        await change(async () => ({ seen })).catch(() => {})
      }
    },
  }
}

export type Endpoint = ReturnType<typeof createEndpoint>

const WELL = { failures: 0, failing_since: null, not_before: null, last_error: null } as const
const FRESH = { ...WELL, state: 'active', sent: 0, dropped: 0, sent_at: null } as const
