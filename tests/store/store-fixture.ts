import { genesisHash, sealEntry } from '../../src/audit/chain.ts'
import type { AuditRow } from '../../src/audit/store.ts'
import { type ChainVerification, verifyChain } from '../../src/audit/verify.ts'
import { insertMessage, type NewMessage } from '../../src/messages/messages.ts'
import { checkMessages } from '../../src/messages/store.ts'
import type { DaemonIdentity } from '../../src/store/daemons.ts'
import { readHead } from '../../src/store/group-commit.ts'
import type { StoreOptions } from '../../src/store/open-store.ts'
import type { Seal, SealedEntry, Store } from '../../src/store/store.ts'

export interface OpenOptions extends Partial<DaemonIdentity> {
  now?: () => number
}

/** The store of one test, which one or several daemons may open, close and reopen. */
export interface StoreFixture {
  open(options?: OpenOptions): Promise<Store>
  /** Changes the stored rows without the store. */
  tamper(sql: string): Promise<void>
  /** Closes all open stores and removes the data. */
  clear(): Promise<void>
}

/** Tracks the opened stores, so that a failed test leaves none open. */
export function createFixture(
  open: (options: StoreOptions) => Promise<Store>,
  rest: Omit<StoreFixture, 'open'>,
): StoreFixture {
  const opened: Store[] = []
  return {
    async open(options = {}) {
      const store = await open(storeOptions(options))
      opened.push(store)
      return store
    },
    tamper: rest.tamper,
    async clear() {
      for (const store of opened) await store.close()
      await rest.clear()
    },
  }
}

export const START = Date.UTC(2030, 0, 1)

export function storeOptions({ now = () => START, ...identity }: OpenOptions): StoreOptions {
  return {
    identity: {
      daemon: 'main',
      address: 'http://127.0.0.1:4570',
      pid: process.pid,
      host: 'testhost',
      leaseMs: 60_000,
      ...identity,
    },
    seal,
    genesis: genesisHash,
    now,
    checkRows: checkMessages,
  }
}

/** The real chain, without redaction. */
const seal: Seal = (drafts, head, time) => {
  const at = new Date(time).toISOString()
  let { seq, hash } = head
  const entries: SealedEntry[] = drafts.map((draft) => {
    const sealed = sealEntry(draft, { chain: head.chain, seq: ++seq, at, prev: hash })
    hash = sealed.entry.hash
    return sealed
  })
  return { entries, head: { chain: head.chain, seq, hash } }
}

export async function verifyAudit(store: Store, chain = store.daemon): Promise<ChainVerification> {
  const rows = await store.all<AuditRow>('SELECT * FROM audit WHERE chain = ? ORDER BY seq', [chain])
  const entries = rows.map((row) => ({ ...row, dataJson: row.data }))
  return await verifyChain(entries, { chain, expectedHead: await readHead(store, chain) })
}

/** Stores a message with its audit entry, as the door does. Returns its key. */
export async function send(store: Store, message: Partial<NewMessage> = {}): Promise<number> {
  const { from = 'Ada', to = 'Bob' } = message
  return await store.write(async (tx) => {
    const { key } = await insertMessage(tx, {
      from,
      to,
      title: 'a title',
      content: 'some content',
      priority: 'normal',
      hop: 0,
      ...message,
    })
    tx.audit({
      type: 'message.accepted',
      class: 'internal',
      actor: from,
      subject: to,
      text: `message ${key}`,
    })
    return key
  })
}

/** The fixture of the running test. */
export type CurrentFixture = () => StoreFixture
