import type { AuditEntry } from '../audit/entry.ts'
import { AppError } from '../base/errors.ts'
import { type DaemonIdentity, releaseLease, renewLease, takeLease } from './daemons.ts'
import { asTx, hasEntries, readHead, readTime, startGroupCommit } from './group-commit.ts'
import type { ChainHead, Reader, Seal, SqlValue, Store, StoreConnection, Work } from './store.ts'

export interface StoreOptions {
  identity: DaemonIdentity
  seal: Seal
  /** The hash before the first entry of a chain. */
  genesis: (chain: string) => string
  now: () => number
  /** Problems in the rows that the engine's own check can't see, such as a message that differs from its digest. */
  checkRows: (stream: Store['stream']) => Promise<string[]>
}

/** The parts that each engine implements. `openStore` adds the parts that all engines share. */
interface SqlEngine {
  connection: StoreConnection
  reader: Reader
  stream<Row>(sql: string, params?: readonly SqlValue[]): AsyncIterable<Row>
  /** Whether something stronger than a lease keeps a second daemon out, such as a file lock. */
  exclusive: boolean
  check(): Promise<string[]>
  /** Throws after a permanent failure. */
  throwIfFailed?(): void
  /** For engines that let several daemons share the store. */
  onOtherDaemons?(listener: () => void): () => void
  close(): Promise<void>
}

export async function openStore(engine: SqlEngine, options: StoreOptions): Promise<Store> {
  const { connection, reader } = engine
  const { identity, now } = options
  const lease = await inTransaction(connection, now(), (tx) => takeLease(tx, identity, engine.exclusive))
  const stored = await readHead(reader, identity.daemon)
  if (stored === undefined && (await hasEntries(reader, identity.daemon))) {
    throw new AppError('STORE_CORRUPT', 'The head of the audit chain is missing', {
      hint: 'The store was changed by hand. Restore it from a backup, or start with another state folder (ORC_HOME).',
    })
  }
  const head: ChainHead = stored ?? { chain: identity.daemon, seq: 0, hash: options.genesis(identity.daemon) }

  const listeners = new Set<(entries: readonly AuditEntry[]) => void>()
  const watchers = new Set<() => void>()
  const commits = startGroupCommit({
    connection,
    lease,
    head,
    seal: options.seal,
    now,
    lastNow: await readTime(reader, head),
    listeners,
    watchers,
  })

  const renewal = setInterval(
    () => void commits.write((tx) => renewLease(tx, lease, identity.leaseMs)).catch(() => {}),
    identity.leaseMs / 3,
  )
  renewal.unref()

  async function shutDown() {
    clearInterval(renewal)
    await commits.drain()
    // After a full disk or a lost server, the lease expires by itself.
    await inTransaction(connection, now(), (tx) => releaseLease(tx, lease)).catch(() => {})
    await engine.close()
  }
  let closing: Promise<void> | undefined

  return {
    engine: connection.engine,
    daemon: identity.daemon,
    epoch: lease.epoch,
    all: reader.all,
    get: reader.get,
    write: commits.write,
    stream: engine.stream,
    pending: commits.pending,
    throwIfFailed: () => engine.throwIfFailed?.(),
    check: async () => [...(await engine.check()), ...(await options.checkRows(engine.stream))],
    onCommit(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    onWrite(watcher) {
      watchers.add(watcher)
      return () => void watchers.delete(watcher)
    },
    onOtherDaemons: (listener) => engine.onOtherDaemons?.(listener) ?? (() => {}),
    close() {
      closing ??= shutDown()
      return closing
    },
  }
}

/** For the few writes before the group commit starts and after it ends. */
async function inTransaction<T>(connection: StoreConnection, now: number, work: Work<T>): Promise<T> {
  const outside = () => {
    throw new Error('only a group commit can seal audit entries')
  }
  await connection.begin()
  try {
    const tx = asTx(connection, now, outside, outside)
    const result = await work(tx)
    await connection.commit()
    return result
  } catch (error) {
    await connection.rollback()
    throw error
  }
}
