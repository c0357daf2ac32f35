import type { AuditDraft, AuditEntry } from '../audit/entry.ts'
import { AppError } from '../base/errors.ts'
import { parseId } from '../base/ids.ts'
import { checkFence, type DaemonLease } from './daemons.ts'
import type { ChainHead, Reader, Seal, SealedEntry, SqlValue, StoreConnection, Tx, Work } from './store.ts'

/** Large enough to share one sync in a flood, small enough to keep the event loop responsive. */
const MAX_BATCH = 256
/** Attempts for a unit of work that collides with other daemons. */
const MAX_ATTEMPTS = 3

interface Waiting {
  work: Work<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** The consequences of a commit outside the store. */
interface CommitEffects {
  entries: readonly SealedEntry[]
  head: ChainHead
  effects: readonly (() => void)[]
}

interface GroupCommitOptions {
  connection: StoreConnection
  lease: DaemonLease
  head: ChainHead
  seal: Seal
  now: () => number
  /** Time of the last commit before the start: transaction times never decrease, even if the clock does. */
  lastNow: number
  listeners: ReadonlySet<(entries: readonly AuditEntry[]) => void>
  /** Called after every commit, including those without entries. */
  watchers: ReadonlySet<() => void>
}

/**
 * Batches units of work that arrive together into one transaction, which shares one sync to disk. Callers learn of success
 * only after that sync. If a unit throws, the batch is rolled back and its units run one by one, so only the culprit
 * fails; the common case then needs no savepoints.
 *
 * States, by `running`, `closed` and `unconfirmed`:
 * - idle: the queue is empty. `write` queues a unit and leads to running.
 * - running: `pump` commits up to MAX_BATCH units at a time until the queue is empty, then back to idle.
 * - closed: entered by `drain`; new units are refused, queued ones still commit.
 * - unconfirmed: the connection was lost during a commit. The next transaction reads the head of the chain: if it moved, the
 *   lost commit is on disk and its effects run then.
 */
export function startGroupCommit(options: GroupCommitOptions) {
  const { connection, lease, seal } = options
  let head = options.head
  /** A commit without a response, until the next transaction finds out whether it is on disk. */
  let unconfirmed: CommitEffects | undefined
  let lastNow = options.lastNow
  let queue: Waiting[] = []
  let running = false
  let closed = false
  let whenIdle: (() => void)[] = []

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
    if (affectsAll(failure.error) || (batch.length === 1 && !connection.isCollision(failure.error))) {
      rejectAll(batch, failure.error)
      return
    }
    for (const [index, waiting] of batch.entries()) {
      const own = await commitAlone(waiting)
      if (own === undefined) continue
      if (affectsAll(own.error)) {
        rejectAll(batch.slice(index), own.error)
        return
      }
      waiting.reject(own.error)
    }
  }

  async function commitAlone(waiting: Waiting): Promise<{ error: unknown } | undefined> {
    for (let attempt = 1; ; attempt++) {
      const failure = await commitTogether([waiting])
      if (failure === undefined || attempt === MAX_ATTEMPTS) return failure
      if (!connection.isCollision(failure.error)) return failure
    }
  }

  async function commitTogether(batch: Waiting[]): Promise<{ error: unknown } | undefined> {
    const drafts: AuditDraft[] = []
    const effects: (() => void)[] = []
    lastNow = Math.max(lastNow, options.now())
    const tx = asTx(connection, lastNow, drafts.push.bind(drafts), effects.push.bind(effects))
    const results: unknown[] = []
    let outcome: CommitEffects | undefined
    try {
      await connection.begin()
      await checkFence(tx, lease)
      if (unconfirmed !== undefined) await settle(tx, unconfirmed)
      for (const waiting of batch) results.push(await waiting.work(tx))
      const sealed = await seal(drafts, head, lastNow)
      await appendEntries(tx, sealed.entries, sealed.head)
      outcome = { ...sealed, effects }
      await connection.commit()
    } catch (error) {
      unconfirmed ??= outcome
      await rollback(connection)
      return { error }
    }
    publish(outcome)
    batch.forEach((waiting, index) => {
      waiting.resolve(results[index])
    })
    return undefined
  }

  /** If the chain contains the lost commit, it is on disk although its callers got an error. */
  async function settle(tx: Tx, lost: CommitEffects) {
    const stored = await readHead(tx, head.chain)
    unconfirmed = undefined
    if (lost.entries.length > 0 && stored?.hash === lost.head.hash) publish(lost)
  }

  function publish(outcome: CommitEffects) {
    head = outcome.head
    for (const effect of outcome.effects) guarded(effect)
    for (const watcher of options.watchers) guarded(watcher)
    if (outcome.entries.length === 0) return
    const entries = outcome.entries.map((one) => one.entry)
    for (const listener of options.listeners) guarded(() => listener(entries))
  }

  return {
    write<T>(work: Work<T>, priority?: 'first'): Promise<T> {
      if (closed) return Promise.reject(new AppError('SERVICE_STOPPING', 'The store is closing'))
      return new Promise<T>((resolve, reject) => {
        const waiting: Waiting = { work, resolve: resolve as (value: unknown) => void, reject }
        if (priority === 'first') queue.unshift(waiting)
        else queue.push(waiting)
        if (running) return
        running = true
        // After the poll phase, so every request that has already arrived joins the batch.
        setImmediate(pump)
      })
    },
    pending: () => queue.length,
    head: () => head,
    /** Refuses new units of work and waits for the queued ones. */
    async drain() {
      closed = true
      if (running) await new Promise<void>((resolve) => whenIdle.push(resolve))
      whenIdle = []
    },
  }
}

/** These faults affect every unit of work alike, so retrying them one by one is useless. */
function affectsAll(error: unknown): boolean {
  return error instanceof AppError && ['STORE_FULL', 'STORE_UNAVAILABLE', 'FENCED'].includes(error.code)
}

function rejectAll(batch: Waiting[], error: unknown) {
  for (const waiting of batch) waiting.reject(error)
}

/** The commit is on disk: a listener that throws must neither make it look failed nor stop the other listeners. */
function guarded(effect: () => void) {
  try {
    effect()
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error))
  }
}

async function rollback(connection: StoreConnection) {
  try {
    await connection.rollback()
  } catch {
    // The engine has already ended the transaction, or the connection is gone: either way, nothing remains.
  }
}

/** The view of a connection that a unit of work gets while a transaction is open. */
export function asTx(
  connection: StoreConnection,
  now: number,
  audit: (draft: AuditDraft) => void,
  afterCommit: (effect: () => void) => void,
): Tx {
  const { skipLocked, lockShared, lockRow, all, get, run, nextKey } = connection
  return { now, skipLocked, lockShared, lockRow, all, get, run, nextKey, audit, afterCommit }
}

/**
 * The part of the audit that every commit needs: appending sealed entries and reading the head of a chain. Queries of
 * the audit are in src/audit/store.ts.
 */

/** Entries per INSERT. The remainder is inserted one by one, so only two statements are ever prepared. */
const ROWS = 16
const COLUMNS = 'chain, seq, at, type, class, actor, subject, text, confidence, data, hash, root, run'
const ROW = '(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)'
const INSERT_ONE = `INSERT INTO audit (${COLUMNS}) VALUES ${ROW}`
const INSERT_MANY = `INSERT INTO audit (${COLUMNS}) VALUES ${Array.from({ length: ROWS }, () => ROW).join(', ')}`

/** All entries must come from one transaction: they share its time. */
function appendEntries(tx: Tx, sealed: readonly SealedEntry[], head: ChainHead): void {
  if (sealed.length === 0) return
  const at = Date.parse(sealed[0]!.entry.at)
  const whole = sealed.length - (sealed.length % ROWS)
  for (let from = 0; from < whole; from += ROWS) {
    const columns: SqlValue[] = []
    for (let index = from; index < from + ROWS; index++) addColumns(columns, sealed[index]!, at)
    tx.run(INSERT_MANY, columns)
  }
  for (const one of sealed.slice(whole)) tx.run(INSERT_ONE, addColumns([], one, at))
  // The head is stored outside the log to reveal a log that was cut off at its end.
  tx.run(
    `INSERT INTO audit_heads (chain, seq, hash) VALUES (?, ?, ?)
     ON CONFLICT (chain) DO UPDATE SET seq = excluded.seq, hash = excluded.hash`,
    [head.chain, head.seq, head.hash],
  )
}

function addColumns(columns: SqlValue[], { entry, dataJson }: SealedEntry, at: number): SqlValue[] {
  columns.push(
    entry.chain,
    entry.seq,
    at,
    entry.type,
    entry.class,
    entry.actor,
    entry.subject ?? null,
    entry.text,
    entry.confidence ?? null,
    dataJson,
    entry.hash,
    keyIn(entry, 'root', 'task'),
    keyIn(entry, 'run_id', 'run'),
  )
  return columns
}

/** The root of the task tree or the run that an entry is about, copied from its data into an indexed column. */
function keyIn({ data }: AuditEntry, field: string, kind: 'task' | 'run'): number | null {
  const id = data?.[field]
  return typeof id === 'string' ? (parseId(kind, id) ?? null) : null
}

export async function readHead(reader: Reader, chain: string): Promise<ChainHead | undefined> {
  return await reader.get<ChainHead>('SELECT chain, seq, hash FROM audit_heads WHERE chain = ?', [chain])
}

export async function hasEntries(reader: Reader, chain: string): Promise<boolean> {
  return (await reader.get('SELECT seq FROM audit WHERE chain = ? LIMIT 1', [chain])) !== undefined
}

/** The time of the entry at the head; 0 for an empty log. */
export async function readTime(reader: Reader, head: ChainHead): Promise<number> {
  const row = await reader.get<{ at: number }>('SELECT at FROM audit WHERE chain = ? AND seq = ?', [
    head.chain,
    head.seq,
  ])
  return row?.at ?? 0
}
