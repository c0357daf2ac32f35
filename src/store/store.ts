import type { AuditDraft, AuditEntry } from '../audit/entry.ts'
import type { IdKind } from '../base/ids.ts'

export type SqlValue = string | number | null
export type MaybePromise<T> = T | Promise<T>

/** Reads. SQL is one text for every engine, with `?` for parameters. */
export interface Reader {
  all<Row>(sql: string, params?: readonly SqlValue[]): MaybePromise<Row[]>
  get<Row>(sql: string, params?: readonly SqlValue[]): MaybePromise<Row | undefined>
}

/** One write transaction, seen by a unit of work. */
export interface Tx extends Reader {
  /** Time of this transaction, epoch milliseconds; never earlier than that of the one before. */
  readonly now: number
  /** Writes. An engine may send it without waiting: a fault then surfaces at the next read or at the commit. */
  run(sql: string, params?: readonly SqlValue[]): void
  /**
   * The next key of that kind. A key taken by a transaction that fails is not used again. Keys become visible in
   * their order, between daemons too: whoever has read up to one never misses a smaller one.
   */
  nextKey(kind: IdKind): MaybePromise<number>
  /** Sealed into the hash chain and written in this same transaction (C12). */
  audit(draft: AuditDraft): void
  /** For effects outside the store: runs once, after the commit is on disk. */
  afterCommit(effect: () => void): void
  /** Appended to a SELECT that claims rows: concurrent daemons then never claim the same one. */
  readonly skipLocked: string
  /** Appended to a SELECT of what must not change until this transaction ends. */
  readonly lockShared: string
  /** Appended to a SELECT of what this transaction is going to change: others wait until it has. */
  readonly lockRow: string
}

/** May be run again if the batch it shares fails, so it must touch nothing but its transaction. */
export type Work<T> = (tx: Tx) => MaybePromise<T>

export interface Store extends Reader {
  readonly engine: 'sqlite' | 'postgres'
  /** This daemon's name: its chain in the audit, and the owner of the agents it started. */
  readonly daemon: string
  /** Of this start of it; the next one has a higher one. */
  readonly epoch: number
  /**
   * Resolves when the work is on disk; works are committed in the order they came, many to one sync. `first`: ahead of
   * all that wait, for what stops them.
   */
  write<T>(work: Work<T>, place?: 'first'): Promise<T>
  /** Rows one by one, without holding them all in memory. */
  stream<Row>(sql: string, params?: readonly SqlValue[]): AsyncIterable<Row>
  /** Called with the entries of each commit, in order. Returns the way to stop. */
  onCommit(listener: (entries: readonly AuditEntry[]) => void): () => void
  /** Called after each commit, also one that the audit does not tell of: a hint to look. Returns the way to stop. */
  onWrite(watcher: () => void): () => void
  /** Called when another daemon has written something, soon after it has: a hint to look. Returns the way to stop. */
  onOthers(listener: () => void): () => void
  /** How full the queue before the disk is, for the metrics. */
  pending(): number
  /** Throws where the store has failed for good, and only a restart tells what it holds. */
  demand(): void
  /** Full check of the stored bytes; the list of problems is empty when all is well. */
  check(): Promise<string[]>
  close(): Promise<void>
}

/** What an engine must offer; everything else is shared. Thin on purpose. */
export interface Connection extends Reader {
  readonly engine: 'sqlite' | 'postgres'
  readonly skipLocked: string
  readonly lockShared: string
  readonly lockRow: string
  begin(): MaybePromise<void>
  run(sql: string, params?: readonly SqlValue[]): void
  /** Resolves when it is on disk. */
  commit(): MaybePromise<void>
  rollback(): MaybePromise<void>
  nextKey(kind: IdKind): MaybePromise<number>
  /** Two daemons got in each other's way: the same work may well succeed when it runs again. */
  isCollision(error: unknown): boolean
}

/** Seals drafts onto a chain: redacts, numbers, hashes. Given from outside, so that the store knows no secrets' rules. */
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

/** `dataJson` is the very text that was hashed; storing anything else would break verification. */
export interface SealedEntry {
  entry: AuditEntry
  dataJson: string
}
