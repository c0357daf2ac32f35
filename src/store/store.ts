import type { AuditDraft, AuditEntry } from '../audit/entry.ts'
import type { IdKind } from '../base/ids.ts'

export type SqlValue = string | number | null
export type MaybePromise<T> = T | Promise<T>

/** SQL is the same for every engine, with `?` for parameters. */
export interface Reader {
  all<Row>(sql: string, params?: readonly SqlValue[]): MaybePromise<Row[]>
  get<Row>(sql: string, params?: readonly SqlValue[]): MaybePromise<Row | undefined>
}

/** A write transaction, as a unit of work sees it. */
export interface Tx extends Reader {
  /** Time of this transaction in epoch milliseconds, never earlier than the previous one's. */
  readonly now: number
  /** Writes, without a result to await. A fault may surface only at the next read or at the commit. */
  run(sql: string, params?: readonly SqlValue[]): void
  /**
   * The next key of that kind. Keys of failed transactions aren't reused. Keys become visible in order, across daemons
   * too: after reading up to a key, no smaller one appears.
   */
  nextKey(kind: IdKind): MaybePromise<number>
  /** Adds an entry to the hash chain in the same transaction (C12). */
  audit(draft: AuditDraft): void
  /** For effects outside the store: runs once, when the commit is on disk. */
  afterCommit(effect: () => void): void
  /** Append to a SELECT that claims rows: concurrent daemons then never claim the same row. */
  readonly skipLocked: string
  /** Append to a SELECT of rows that must not change until this transaction ends. */
  readonly lockShared: string
  /** Append to a SELECT of rows that this transaction will change: other transactions wait for it. */
  readonly lockRow: string
}

/** May run again if its batch fails, so it must touch nothing but its transaction. */
export type Work<T> = (tx: Tx) => MaybePromise<T>

export interface Store extends Reader {
  readonly engine: 'sqlite' | 'postgres'
  /** The daemon's name, which is also the name of its chain in the audit. */
  readonly daemon: string
  /** Grows with each start of the daemon. */
  readonly epoch: number
  /**
   * Resolves when the work is on disk. Units commit in the order they arrive, many per sync. `first` goes ahead of all
   * queued units, for those that stop them.
   */
  write<T>(work: Work<T>, priority?: 'first'): Promise<T>
  /** Yields rows one by one, without holding all of them in memory. */
  stream<Row>(sql: string, params?: readonly SqlValue[]): AsyncIterable<Row>
  /** Called with the entries of each commit, in order. Returns the function that unsubscribes. */
  onCommit(listener: (entries: readonly AuditEntry[]) => void): () => void
  /** Called after each commit, including those without audit entries. Returns the function that unsubscribes. */
  onWrite(watcher: () => void): () => void
  /** Called soon after another daemon has written something. Returns the function that unsubscribes. */
  onOtherDaemons(listener: () => void): () => void
  /** Number of queued units of work, for the metrics. */
  pending(): number
  /** Throws after a permanent failure: only a restart can tell what the store holds. */
  throwIfFailed(): void
  /** Checks all stored bytes and returns the problems found. */
  check(): Promise<string[]>
  close(): Promise<void>
}

/** The part that each engine implements. It is small on purpose. */
export interface StoreConnection extends Omit<Tx, 'now' | 'audit' | 'afterCommit'> {
  readonly engine: 'sqlite' | 'postgres'
  begin(): MaybePromise<void>
  /** Resolves when the transaction is on disk. */
  commit(): MaybePromise<void>
  rollback(): MaybePromise<void>
  /** Whether two daemons collided: the same unit of work may succeed when it runs again. */
  isCollision(error: unknown): boolean
}

/** Redacts, numbers and hashes drafts. Passed in, because the store must not depend on the audit room. */
export type Seal = (
  drafts: readonly AuditDraft[],
  head: ChainHead,
  at: number,
) => MaybePromise<{ entries: readonly SealedEntry[]; head: ChainHead }>

export interface ChainHead {
  chain: string
  seq: number
  hash: string
}

/** `dataJson` is the text that was hashed; storing any other text would break verification. */
export interface SealedEntry {
  entry: AuditEntry
  dataJson: string
}

/**
 * Replaces lone surrogates, which UTF-8 can't hold, and NUL, which PostgreSQL can't. Call it before computing a digest:
 * text that reads back differently would look damaged.
 */
export function storable(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed
}
