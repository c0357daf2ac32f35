import { formatId, parseId } from '../base/ids.ts'
import { isIntact, type MessageRow } from '../messages/store/messages.ts'
import { hashOf } from '../people/request-view.ts'
import type { HumanRequestRow } from '../people/store/human-requests.ts'
import type { Store } from '../store/store.ts'
import { genesisHash } from './chain.ts'
import { type AuditRow, readHead, streamAudit } from './store.ts'
import { type ChainMark, type StoredEntry, verifyChain } from './verify.ts'

export interface AuditVerdict {
  ok: boolean
  /** Entries that were checked. */
  count: number
  /** The first bad entry, where it is an entry that is bad. */
  seq?: number
  problem?: string
  message: string
}

/**
 * Checks the whole chain, and every message against it: an entry says which digest a message was accepted with, so
 * that a message which was changed, removed or slipped in shows as well (C12). One pass over both, in constant
 * memory, while the service goes on writing. `witness` must have been read before this is called.
 */
export async function verifyAudit(store: Store, witness?: ChainMark): Promise<AuditVerdict> {
  const chain = store.daemon
  const head: ChainMark = (await readHead(store, chain)) ?? { seq: 0, hash: genesisHash(chain) }
  // Read after the head and before the entries: each of them has its entry there.
  const messages = await followMessages(store)
  const pass = { fault: undefined as AuditVerdict | undefined, last: 0 }
  try {
    const verdict = await verifyChain(entriesUpTo(store, head.seq, messages, pass), {
      chain,
      expectedHead: head,
      witness,
    })
    // Whatever comes first in the log is told.
    if (!verdict.ok && verdict.seq <= (pass.fault?.seq ?? Number.POSITIVE_INFINITY)) {
      return { ...verdict, count: Math.max(0, verdict.seq - 1) }
    }
    if (!verdict.ok || pass.fault !== undefined) return pass.fault!
    const { seq } = (await readHead(store, chain)) ?? head
    if (pass.last > seq) {
      return fault(seq, `Entry ${seq + 1} lies after the recorded head, ${seq}`, 'unrecorded', seq + 1)
    }
    const stray = await messages.rest()
    if (stray !== undefined) return fault(verdict.count, stray, 'message')
    const changed = await changedRequest(store)
    if (changed !== undefined) return fault(verdict.count, changed, 'request')
    const counted = `${verdict.count} entries and ${messages.count()} messages`
    return { ok: true, count: verdict.count, message: `All is well: ${counted} are as they were written` }
  } finally {
    await messages.close()
  }
}

/** What a person is asked about must be what was asked: a verdict is bound to its hash. */
async function changedRequest(store: Store): Promise<string | undefined> {
  const rows = store.stream<Pick<HumanRequestRow, 'id' | 'asker' | 'context' | 'action' | 'action_hash'>>(
    'SELECT id, asker, context, action, action_hash FROM human_requests WHERE action IS NOT NULL ORDER BY id',
  )
  for await (const row of rows) {
    if (hashOf(row) !== row.action_hash) {
      return `The action of ${formatId('req', row.id)} is not the one that was asked about`
    }
  }
  return undefined
}

/** Gives the entries to the chain's check, and compares each accepted message once its entry is known to be good. */
async function* entriesUpTo(
  store: Store,
  headSeq: number,
  messages: Messages,
  pass: { fault: AuditVerdict | undefined; last: number },
): AsyncGenerator<StoredEntry> {
  for await (const row of streamAudit(store, {})) {
    pass.last = row.seq
    // The chain may have grown since the head was read; what is new is good enough to account for messages.
    const isOld = row.seq <= headSeq
    if (isOld) yield { ...row, dataJson: row.data }
    if (row.type !== 'message.accepted' || pass.fault !== undefined) continue
    const problem = await messages.compare(row, isOld)
    if (problem !== undefined) pass.fault = fault(row.seq - 1, problem, 'message', row.seq)
  }
}

interface Messages {
  /** What is wrong with the message that the entry tells of. `required`: it was written before we began. */
  compare(entry: AuditRow, required: boolean): Promise<string | undefined>
  /** After all entries: a message that none of them told of. */
  rest(): Promise<string | undefined>
  count(): number
  close(): Promise<void>
}

async function followMessages(store: Store): Promise<Messages> {
  const rows = store.stream<MessageRow>('SELECT * FROM messages ORDER BY seq')[Symbol.asyncIterator]()
  // Daemons that share a store have a chain each, and the messages of the others are told of in theirs.
  const chains = await store.all<{ chain: string }>('SELECT chain FROM audit_heads')
  const isShared = chains.some(({ chain }) => chain !== store.daemon)
  let next = await rows.next()
  let count = 0

  /** Passes over messages before that key; gives the first that no entry told of. */
  async function skipTo(key: number): Promise<string | undefined> {
    while (next.done !== true && next.value.seq < key) {
      const { seq } = next.value
      if (!isShared) return `${formatId('msg', seq)} is in the store, but no entry tells of it`
      next = await rows.next()
    }
    return undefined
  }

  return {
    async compare(entry, required) {
      const { message_id, digest } = JSON.parse(entry.data) as { message_id?: string; digest?: string }
      const key = parseId('msg', message_id ?? '')
      if (key === undefined) return undefined
      const stray = await skipTo(key)
      if (stray !== undefined) return stray
      if (next.done === true || next.value.seq !== key) {
        return required ? `${message_id} is missing: entry ${entry.seq} tells of it` : undefined
      }
      const row = next.value
      next = await rows.next()
      count += 1
      return isIntact(row) && row.digest === digest
        ? undefined
        : `${message_id} is not the message that entry ${entry.seq} tells of`
    },
    rest: () => skipTo(Number.POSITIVE_INFINITY),
    count: () => count,
    async close() {
      await rows.return?.()
    },
  }
}

function fault(count: number, message: string, problem: string, seq?: number): AuditVerdict {
  return { ok: false, count, ...(seq === undefined ? {} : { seq }), problem, message }
}
