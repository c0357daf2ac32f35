import type { AuditDraft, AuditEntry } from '../audit/entry.ts'
import { AppError } from '../base/errors.ts'
import { appendEntries, readHead } from './audit-rows.ts'
import { checkFence, type DaemonLease } from './daemons.ts'
import type { ChainHead, Connection, Seal, SealedEntry, Tx, Work } from './store.ts'
import { asTx } from './transaction.ts'

/** Enough to share one sync among a flood, small enough that the event loop gets its turn. */
const MAX_BATCH = 256
/** For a work that other daemons got in the way of. */
const MAX_ATTEMPTS = 3

interface Waiting {
  work: Work<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** What a commit makes true outside the store. */
interface Outcome {
  entries: readonly SealedEntry[]
  head: ChainHead
  effects: readonly (() => void)[]
}

interface GroupCommitOptions {
  connection: Connection
  lease: DaemonLease
  head: ChainHead
  seal: Seal
  now: () => number
  /** Of the last commit before the start: time does not go back, whatever the clock says. */
  lastNow: number
  listeners: ReadonlySet<(entries: readonly AuditEntry[]) => void>
  /** Told of every commit, also of one without entries. */
  watchers: ReadonlySet<() => void>
}

/**
 * Puts works that arrive together into one transaction, so that they share one sync to disk. Nobody is told of
 * success before that sync. If a work throws, the batch is rolled back and its works run one by one, so that
 * only the culprit fails; this spares the ordinary case a savepoint each.
 */
export function startGroupCommit(options: GroupCommitOptions) {
  const { connection, lease, seal } = options
  let head = options.head
  /** A commit that got no answer, until a look at the store tells what became of it. */
  let doubt: Outcome | undefined
  let lastNow = options.lastNow
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
    if (meetsAll(failure.error) || (batch.length === 1 && !connection.isCollision(failure.error))) {
      rejectAll(batch, failure.error)
      return
    }
    for (const [index, waiting] of batch.entries()) {
      const own = await commitAlone(waiting)
      if (own === undefined) continue
      if (meetsAll(own.error)) {
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
    let outcome: Outcome | undefined
    try {
      await connection.begin()
      await checkFence(tx, lease)
      if (doubt !== undefined) await settle(tx, doubt)
      for (const waiting of batch) results.push(await waiting.work(tx))
      const sealed = await seal(drafts, head, lastNow)
      await appendEntries(tx, sealed.entries, sealed.head)
      outcome = { ...sealed, effects }
      await connection.commit()
    } catch (error) {
      doubt ??= outcome
      await rollback(connection)
      return { error }
    }
    publish(outcome)
    batch.forEach((waiting, index) => {
      waiting.resolve(results[index])
    })
    return undefined
  }

  /** The connection was lost during a commit. If the chain grew by it, it is on disk, whatever its senders heard. */
  async function settle(tx: Tx, doubtful: Outcome) {
    const stored = await readHead(tx, head.chain)
    doubt = undefined
    if (doubtful.entries.length > 0 && stored?.hash === doubtful.head.hash) publish(doubtful)
  }

  function publish(outcome: Outcome) {
    head = outcome.head
    for (const effect of outcome.effects) guarded(effect)
    for (const watcher of options.watchers) guarded(watcher)
    if (outcome.entries.length === 0) return
    const entries = outcome.entries.map((one) => one.entry)
    for (const listener of options.listeners) guarded(() => listener(entries))
  }

  return {
    write<T>(work: Work<T>, place?: 'first'): Promise<T> {
      if (closed) return Promise.reject(new AppError('SERVICE_STOPPING', 'The store is closing'))
      return new Promise<T>((resolve, reject) => {
        const waiting: Waiting = { work, resolve: resolve as (value: unknown) => void, reject }
        if (place === 'first') queue.unshift(waiting)
        else queue.push(waiting)
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

/** Such a fault would meet every work alike, so that trying them one by one is of no use. */
function meetsAll(error: unknown): boolean {
  return error instanceof AppError && ['STORE_FULL', 'STORE_UNAVAILABLE', 'FENCED'].includes(error.code)
}

function rejectAll(batch: Waiting[], error: unknown) {
  for (const waiting of batch) waiting.reject(error)
}

/** The commit stands; a listener that throws must not make it look failed, nor stop those to come. */
function guarded(effect: () => void) {
  try {
    effect()
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error))
  }
}

async function rollback(connection: Connection) {
  try {
    await connection.rollback()
  } catch {
    // The engine already ended the transaction, or the connection is gone: either way nothing of it remains.
  }
}
