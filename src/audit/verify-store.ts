import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { readHead } from '../store/group-commit.ts'
import type { Store } from '../store/store.ts'
import { genesisHash } from './chain.ts'
import type { AuditEntry } from './entry.ts'
import { type AuditRow, streamAudit } from './store.ts'
import { type ChainMark, type StoredEntry, verifyChain } from './verify.ts'

export interface AuditVerification {
  ok: boolean
  /** Number of entries checked. */
  count: number
  /** The first bad entry, if an entry is bad. */
  seq?: number
  problem?: string
  message: string
}

/** Reads the stored messages in the order of their entries. */
export interface MessageCursor {
  /** The problem of the message that the entry records. `required`: it was written before the verification began. */
  compare(entry: AuditRow, required: boolean): Promise<string | undefined>
  /** After all entries: a message without an entry. */
  rest(): Promise<string | undefined>
  count(): number
  close(): Promise<void>
}

/** The rows outside the log that the audit vouches for. Their rooms pass them in. */
interface AuditedRows {
  openMessages(store: Store): Promise<MessageCursor>
  /** A request to a person whose action differs from the one asked about. */
  findChangedRequest(store: Store): Promise<string | undefined>
}

/**
 * Checks the whole chain, and every message against it: an entry holds the digest that its message was accepted with,
 * which reveals changed, removed and inserted messages (C12). Reads both once, in constant memory, while the service
 * keeps writing. Read `witness` before calling this.
 */
export async function verifyAudit(
  store: Store,
  rows: AuditedRows,
  witness?: ChainMark,
): Promise<AuditVerification> {
  const chain = store.daemon
  const head: ChainMark = (await readHead(store, chain)) ?? { seq: 0, hash: genesisHash(chain) }
  // Opened after the head was read and before the entries are: every message then has its entry.
  const messages = await rows.openMessages(store)
  const pass = { fault: undefined as AuditVerification | undefined, last: 0 }
  try {
    const verdict = await verifyChain(entriesUpTo(store, head.seq, messages, pass), {
      chain,
      expectedHead: head,
      witness,
    })
    // Report the problem that comes first in the log.
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
    const changed = await rows.findChangedRequest(store)
    if (changed !== undefined) return fault(verdict.count, changed, 'request')
    const counted = `${verdict.count} entries and ${messages.count()} messages`
    return { ok: true, count: verdict.count, message: `${counted} verified, none changed` }
  } finally {
    await messages.close()
  }
}

/** Yields the entries to the chain's check, and compares each accepted message once its entry has passed. */
async function* entriesUpTo(
  store: Store,
  headSeq: number,
  messages: MessageCursor,
  pass: { fault: AuditVerification | undefined; last: number },
): AsyncGenerator<StoredEntry> {
  for await (const row of streamAudit(store, {})) {
    pass.last = row.seq
    // Entries appended since the head was read aren't verified, but their messages are accounted for.
    const isOld = row.seq <= headSeq
    if (isOld) yield { ...row, dataJson: row.data }
    if (row.type !== 'message.accepted' || pass.fault !== undefined) continue
    const problem = await messages.compare(row, isOld)
    if (problem !== undefined) pass.fault = fault(row.seq - 1, problem, 'message', row.seq)
  }
}

function fault(count: number, message: string, problem: string, seq?: number): AuditVerification {
  return { ok: false, count, ...(seq === undefined ? {} : { seq }), problem, message }
}

/**
 * The head of the audit chain, in a file outside the store. Written at most once a second, it may lag behind but never
 * lead: a log that ends before it was cut off.
 */
export function openWitness(file: string, store: Store): { read(): ChainMark | undefined; close(): void } {
  let newest: ChainMark | undefined
  let timer: NodeJS.Timeout | undefined

  function write() {
    timer = undefined
    if (newest === undefined) return
    try {
      writeFileSync(`${file}.new`, JSON.stringify(newest), { mode: 0o600 })
      renameSync(`${file}.new`, file)
    } catch {
      // A full disk: keep the older file; the next commit tries again.
    }
  }

  const stop = store.onCommit((entries: readonly AuditEntry[]) => {
    const { seq, hash } = entries.at(-1)!
    newest = { seq, hash }
    timer ??= setTimeout(write, 1000)
    timer.unref()
  })

  return {
    read: () => readWitness(file),
    close() {
      stop()
      clearTimeout(timer)
      write()
    },
  }
}

export function readWitness(file: string): ChainMark | undefined {
  try {
    const { seq, hash } = JSON.parse(readFileSync(file, 'utf8')) as ChainMark
    return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}
