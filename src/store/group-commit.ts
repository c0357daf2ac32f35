import type { AuditDraft, AuditEntry } from '../model/audit-entry.ts'
import { AppError } from '../model/errors.ts'
import { appendEntries } from './audit-log.ts'
import { checkFence, type DaemonLease } from './daemons.ts'
import type { ChainHead, Connection, Seal, SealedEntry, Tx, Work } from './store.ts'

/** Enough to share one sync among a flood, small enough that the event loop gets its turn. */
const MAX_BATCH = 256

interface Waiting {
  work: Work<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

export interface GroupCommitOptions {
  connection: Connection
  lease: DaemonLease
  head: ChainHead
  seal: Seal
  now: () => number
  onCommit(entries: readonly AuditEntry[], head: ChainHead): void
}

/**
 * Puts works that arrive together into one transaction, so that they share one sync to disk. Nobody is told of
 * success before that sync. If a work throws, the batch is rolled back and its works run one by one, so that
 * only the culprit fails; this spares the ordinary case a savepoint each.
 */
export function startGroupCommit(options: GroupCommitOptions) {
  const { connection, lease, seal } = options
  let head = options.head
  let lastNow = 0
  let queue: Waiting[] = []
  let running = false
  let closed = false
  let whenIdle: (() => void)[] = []

  function schedule() {
    if (running) return
    running = true
    // After the poll phase: every request that is already here joins the batch.
    setImmediate(pump)
  }

  async function pump() {
    const batch = queue.length <= MAX_BATCH ? queue : queue.slice(0, MAX_BATCH)
    queue = batch === queue ? [] : queue.slice(MAX_BATCH)
    await commitAll(batch)
    if (queue.length > 0) {
      setImmediate(pump)
      return
    }
    running = false
    for (const idle of whenIdle.splice(0)) idle()
  }

  async function commitAll(batch: Waiting[]) {
    const failure = await commitTogether(batch)
    if (failure === undefined) return
    if (batch.length === 1 || isStoreFault(failure.error)) {
      for (const waiting of batch) waiting.reject(failure.error)
      return
    }
    for (const waiting of batch) await commitAll([waiting])
  }

  async function commitTogether(batch: Waiting[]): Promise<{ error: unknown } | undefined> {
    const drafts: AuditDraft[] = []
    const effects: (() => void)[] = []
    lastNow = Math.max(lastNow, options.now())
    const tx = transaction(connection, lastNow, drafts, effects)
    const results: unknown[] = []
    let sealed: { entries: readonly SealedEntry[]; head: ChainHead }
    try {
      await connection.begin()
      await checkFence(tx, lease)
      for (const waiting of batch) results.push(await waiting.work(tx))
      sealed = await seal(drafts, head, lastNow)
      await appendEntries(tx, sealed.entries, sealed.head)
      await connection.commit()
    } catch (error) {
      await rollback(connection)
      return { error }
    }
    head = sealed.head
    for (const effect of effects) effect()
    batch.forEach((waiting, index) => {
      waiting.resolve(results[index])
    })
    if (sealed.entries.length > 0) {
      options.onCommit(
        sealed.entries.map((one) => one.entry),
        head,
      )
    }
    return undefined
  }

  return {
    write<T>(work: Work<T>): Promise<T> {
      if (closed) return Promise.reject(new AppError('SERVICE_STOPPING', 'The store is closing'))
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
        schedule()
      })
    },
    pending: () => queue.length,
    head: () => head,
    /** Refuses new works and waits for those under way. */
    async drain() {
      closed = true
      if (running) await new Promise<void>((resolve) => whenIdle.push(resolve))
      whenIdle = []
    },
  }
}

function transaction(connection: Connection, now: number, drafts: AuditDraft[], effects: (() => void)[]): Tx {
  return {
    now,
    skipLocked: connection.skipLocked,
    all: (sql, params) => connection.all(sql, params),
    get: (sql, params) => connection.get(sql, params),
    run: (sql, params) => connection.run(sql, params),
    nextKey: (kind) => connection.nextKey(kind),
    audit: (draft) => void drafts.push(draft),
    afterCommit: (effect) => void effects.push(effect),
  }
}

/** Faults of the store itself would meet every work alike, so that trying them one by one is of no use. */
function isStoreFault(error: unknown): boolean {
  return error instanceof AppError && (error.code.startsWith('STORE_') || error.code === 'FENCED')
}

async function rollback(connection: Connection) {
  try {
    await connection.rollback()
  } catch {
    // The engine already ended the transaction, or the connection is gone: either way nothing of it remains.
  }
}
