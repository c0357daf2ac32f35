/**
 * Posts events to one address, in order and one at a time; other addresses don't wait for it. An event stays in the queue
 * until it was sent, so that a crash loses none; at worst it is sent again with the same id.
 *
 * States, stored in the row of the webhook:
 * - active: wanted audit entries are queued and sent. A success clears the failures.
 * - failing (active with failures): the first event of the queue is retried after a backoff of 5 s to an hour, or after
 *   the receiver's Retry-After (`not_before`). An event that the receiver rejects REJECTIONS times is dropped, so that
 *   one bad event doesn't hold up the others until the endpoint is dead.
 * - dead: entered after DEAD_AFTER_MS without a success (a day covers an outage overnight) or a 410. The queue is dropped
 *   and people get a notice. Only a successful test or a new address leaves this state, and events from the time in
 *   between are not sent.
 *
 * In memory, `seen` may be ahead of the stored position while no entry is wanted.
 */
import { randomUUID } from 'node:crypto'
import type { AuditEntry } from '../audit/entry.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { Log } from '../base/log.ts'
import { createQueueLoop } from '../base/queue-loop.ts'
import { askPeople } from '../people/people.ts'
import type { MaybePromise, Store, Tx } from '../store/store.ts'
import { eventOf, isWanted } from './event.ts'
import { createSender, type Posted, retryDelay, type SenderOptions } from './send.ts'
import {
  findWebhook,
  keepWebhook,
  lastSeq,
  nextEntries,
  type QueuedRow,
  readEntry,
  type WebhookRow,
  webhookQueue,
} from './store.ts'

interface EndpointOptions extends SenderOptions {
  row: WebhookRow | undefined
  store: Store
  log: Log
}

const DEAD_AFTER_MS = 24 * 3600_000
/** Beyond this many waiting events, the oldest are dropped and counted. */
const MAX_PENDING = 1000
const REJECTIONS = 3
const PAGE = 500
/** How often the position in the audit is stored while no entry is wanted. */
const STORE_POSITION_EVERY = 10_000

export function createEndpoint(options: EndpointOptions) {
  const { config, store, clock, log } = options
  const { name } = config
  const chain = store.daemon
  const queue = webhookQueue(chain, name)
  const closing = new AbortController()
  const sender = createSender(options, closing.signal)
  let row = options.row
  /** All wanted entries up to this one are in the queue; the stored position may lag behind. */
  let seen = row?.seen ?? 0

  /** Changes the stored row, which is authoritative. */
  async function change(how: (tx: Tx, before: WebhookRow) => MaybePromise<Partial<WebhookRow>>) {
    const after = await store.write(async (tx) => {
      const before = (await findWebhook(tx, chain, name)) ?? row!
      const next = { ...before, ...(await how(tx, before)) }
      keepWebhook(tx, chain, next)
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
    row = { ...NEW_ROW, sent: row?.sent ?? 0, dropped: row?.dropped ?? 0, name, target, seen: from }
    seen = from
    await change(() => ({}))
  }

  /** Adds wanted entries to the queue, up to the end of the audit. */
  async function catchUp() {
    for (let page = PAGE; page === PAGE; ) {
      const entries = await nextEntries(store, chain, seen, PAGE)
      page = entries.length
      if (page === 0) return
      const last = entries.at(-1)!.seq
      const matching = entries.filter((entry) => isWanted(config.events, entry))
      if (matching.length === 0 && last - row!.seen < STORE_POSITION_EVERY) {
        seen = Math.max(seen, last)
        continue
      }
      await change(async (tx, before) => {
        for (const { seq } of matching) queue.add(tx, seq)
        const over = await queue.shorten(tx, MAX_PENDING)
        if (over > 0 && before.dropped === 0)
          recordDropped(tx, name, `more than ${MAX_PENDING} events are waiting`)
        return { seen: last, dropped: before.dropped + over }
      })
    }
  }

  const loop = createQueueLoop(`webhook ${name}`, { next, due }, { clock, log })

  async function next(): Promise<boolean> {
    if (row!.state === 'dead') return false
    await catchUp()
    if ((row!.not_before ?? 0) > clock.now()) return false
    const first = await queue.first(store)
    if (first === undefined) return false
    const found = await readEntry(store, chain, first.seq)
    const posted: Posted =
      found === undefined
        ? { outcome: 'rejected', error: 'it is no longer in the audit' }
        : await sender.send(eventOf(found))
    if (closing.signal.aborted) return false
    await settle(first, posted)
    return true
  }

  async function due(): Promise<number | undefined> {
    if (row!.state === 'dead' || (await queue.first(store)) === undefined) return undefined
    return row!.not_before ?? clock.now()
  }

  async function settle({ seq, attempts }: QueuedRow, posted: Posted) {
    if (posted.outcome === 'sent') {
      await change((tx, before) => {
        queue.remove(tx, seq)
        return { ...HEALTHY, sent: before.sent + 1, sent_at: tx.now }
      })
      return
    }
    const { outcome, error, retryAfterMs = 0 } = posted
    if (row!.failures === 0) log.warn({ webhook: name, error }, 'cannot send to a webhook')
    await change(async (tx, before) => {
      const failing_since = before.failing_since ?? tx.now
      const failures = before.failures + 1
      if (outcome === 'gone' || tx.now - failing_since >= DEAD_AFTER_MS) {
        return { ...(await markDead(tx, before, error)), failures, failing_since }
      }
      const isRejected = outcome === 'rejected' && attempts + 1 >= REJECTIONS
      if (isRejected) {
        queue.remove(tx, seq)
        recordDropped(tx, name, `entry ${seq} was rejected ${REJECTIONS} times: ${error}`)
      } else queue.countAttempt(tx, seq)
      const delay = Math.max(retryAfterMs, retryDelay(failures))
      return {
        ...{ failing_since, failures, last_error: error, not_before: tx.now + delay },
        dropped: before.dropped + (isRejected ? 1 : 0),
      }
    })
  }

  /** Marks the endpoint as dead, drops its queue, and puts a notice into the inbox. */
  async function markDead(tx: Tx, before: WebhookRow, error: string): Promise<Partial<WebhookRow>> {
    const lost = await queue.clear(tx)
    await recordDeath(tx, name, error, lost)
    return { state: 'dead', last_error: error, not_before: null, dropped: before.dropped + lost }
  }

  return {
    name,
    config,
    row: () => row!,
    pending: () => queue.count(store),
    shown: sender.shown,
    open,
    /** Called with the entries of each commit. */
    onCommit(entries: readonly AuditEntry[]) {
      if (row?.state !== 'active' || closing.signal.aborted) return
      if (entries.some((one) => isWanted(config.events, one))) loop.kick()
      else if (entries[0]!.seq === seen + 1) seen = entries.at(-1)!.seq
    },
    kick: loop.kick,
    /** Sends a test event. Its success revives a dead endpoint. */
    async test(): Promise<Posted> {
      const posted = await sender.send({
        id: `evt_test_${randomUUID().replaceAll('-', '')}`,
        type: 'webhook.test',
        at: new Date(clock.now()).toISOString(),
        actor: ORCHESTRATOR,
        text: `Test of the webhook ${name}`,
        data: { webhook: name },
      })
      if (posted.outcome !== 'sent') return posted
      const head = await lastSeq(store, chain)
      await change((_, before) => ({
        ...HEALTHY,
        state: 'active',
        seen: before.state === 'dead' ? head : before.seen,
      }))
      loop.kick()
      return posted
    },
    async close() {
      closing.abort()
      await loop.close()
      if (row?.state === 'active' && seen > row.seen) {
        await change(() => ({ seen })).catch(() => {})
      }
    },
  }
}

export type Endpoint = ReturnType<typeof createEndpoint>

const HEALTHY = { failures: 0, failing_since: null, not_before: null, last_error: null } as const
const NEW_ROW = { ...HEALTHY, state: 'active', sent: 0, dropped: 0, sent_at: null } as const

function recordDropped(tx: Tx, webhook: string, why: string) {
  tx.audit(entry('dropped', webhook, why))
}

/** Records a dead webhook in the audit and in the inbox. */
async function recordDeath(tx: Tx, webhook: string, error: string, lost: number) {
  const text = `the webhook ${webhook} is dead (${error}); ${lost} events were dropped`
  tx.audit(entry('dead', webhook, text))
  await askPeople(tx, {
    kind: 'escalation',
    purpose: 'notice',
    asker: ORCHESTRATOR,
    question: `The webhook ${webhook} is dead: ${error}. Repair it, then run: orc webhook test ${webhook}`,
    reason: `it accepted no events; ${lost} were dropped`,
    context: JSON.stringify({ webhook }),
    text,
    about: () => ({ webhook }),
  })
}

function entry(what: string, webhook: string, text: string) {
  return {
    type: `webhook.${what}`,
    class: 'internal' as const,
    actor: ORCHESTRATOR,
    text: `${webhook}: ${text}`,
    data: { webhook },
  }
}
