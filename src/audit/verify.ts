import { setImmediate } from 'node:timers/promises'
import { genesisHash, type HashedFields, hashEntry } from './chain.ts'

/** An entry as read from a store or an export. */
export interface StoredEntry extends Omit<HashedFields, 'at'> {
  /** ISO 8601, or epoch milliseconds. */
  at: string | number
  dataJson: string
  hash: string
  /** Optional, because it is the hash of the previous entry. */
  prev?: string | undefined
}

/** A known sequence number and its hash, recorded apart from the entries. */
export interface ChainMark {
  seq: number
  hash: string
}

export interface VerifyOptions {
  chain: string
  /** Written with each entry and read in the same snapshot, so it must match the last entry exactly. */
  expectedHead?: ChainMark | undefined
  /** Kept outside the store and written periodically: it may be older than the last entry, never newer. */
  witness?: ChainMark | undefined
}

type ChainProblem =
  | 'changed' // the entry doesn't match its hash
  | 'missing' // later entries exist, but not this one
  | 'reordered' // the entry comes later than it should
  | 'duplicate' // the entry comes a second time
  | 'cut_off' // the chain ends before the entry that the head or the witness records
  | 'rewritten' // the entry matches its hash, but isn't the original
  | 'unrecorded' // the entry lies after the recorded head

export type ChainVerification =
  | { ok: true; count: number; head: ChainMark }
  | { ok: false; seq: number; problem: ChainProblem; message: string }

type ChainFailure = ChainVerification & { ok: false }

/** Entries between two pauses, which let other work run during a long verification. */
const PAUSE_EVERY = 1000

/**
 * Verifies a chain from its beginning and names the first bad entry (C12). Entries are streamed in order of `seq`, because
 * the log may be far larger than memory. Only the head or the witness can reveal a chain that was recomputed from some
 * entry on; the verdict then names the entry they record, and the first bad one may lie before it.
 */
export async function verifyChain(
  entries: Iterable<StoredEntry> | AsyncIterable<StoredEntry>,
  options: VerifyOptions,
): Promise<ChainVerification> {
  let last: ChainMark = { seq: 0, hash: genesisHash(options.chain) }
  let gap: { before: number } | undefined
  let sincePause = 0
  for await (const entry of entries) {
    if (++sincePause === PAUSE_EVERY) {
      sincePause = 0
      await setImmediate()
    }
    if (gap !== undefined) {
      // The only open question is whether the missing entry comes later.
      if (entry.seq === last.seq + 1) return outOfPlace(entry.seq, gap.before)
      continue
    }
    if (entry.seq > last.seq + 1) {
      gap = { before: entry.seq }
      continue
    }
    const failure = checkEntry(entry, last, options)
    if (failure !== undefined) return failure
    last = { seq: entry.seq, hash: entry.hash }
  }
  if (gap !== undefined) return absent(last.seq + 1, gap.before)
  return checkEnd(last, options) ?? { ok: true, count: last.seq, head: last }
}

function checkEntry(entry: StoredEntry, last: ChainMark, options: VerifyOptions): ChainFailure | undefined {
  const { seq } = entry
  if (seq !== last.seq + 1) {
    return Number.isInteger(seq) && seq > 0
      ? fail(seq, 'duplicate', `Entry ${seq} comes a second time, after entry ${last.seq}`)
      : fail(last.seq + 1, 'changed', `After entry ${last.seq} comes one with the impossible number ${seq}`)
  }
  if (entry.chain !== options.chain) {
    return fail(seq, 'changed', `Entry ${seq} belongs to the chain ${entry.chain}, not to ${options.chain}`)
  }
  const at = typeof entry.at === 'number' ? toIso(entry.at) : entry.at
  if (hashEntry({ ...entry, at }, entry.dataJson, entry.prev ?? last.hash) !== entry.hash) {
    return fail(seq, 'changed', `Entry ${seq} does not match its hash`)
  }
  if (entry.prev !== undefined && entry.prev !== last.hash) {
    // The entry is intact, but follows a different one.
    return last.seq === 0
      ? fail(seq, 'rewritten', `Entry ${seq} does not begin the chain ${options.chain}`)
      : fail(last.seq, 'rewritten', `Entry ${last.seq} is not the one that entry ${seq} was written after`)
  }
  for (const mark of [options.expectedHead, options.witness]) {
    if (mark?.seq === seq && mark.hash !== entry.hash) {
      const keeper = mark === options.witness ? 'witness' : 'head'
      return fail(
        seq,
        'rewritten',
        `Entry ${seq}, or one before it, is not the one that the ${keeper} recorded`,
      )
    }
  }
  if (options.expectedHead !== undefined && seq > options.expectedHead.seq) {
    return fail(seq, 'unrecorded', `Entry ${seq} lies after the recorded head, ${options.expectedHead.seq}`)
  }
  return undefined
}

function checkEnd(last: ChainMark, { expectedHead, witness }: VerifyOptions): ChainFailure | undefined {
  const known = Math.max(expectedHead?.seq ?? 0, witness?.seq ?? 0)
  if (known <= last.seq) return undefined
  return fail(last.seq + 1, 'cut_off', `The chain ends with entry ${last.seq}, but reached entry ${known}`)
}

function outOfPlace(seq: number, before: number): ChainFailure {
  return fail(seq, 'reordered', `Entry ${seq} comes after entry ${before}`)
}

function absent(seq: number, before: number): ChainFailure {
  return fail(seq, 'missing', `Entry ${seq} is missing: after entry ${seq - 1} comes entry ${before}`)
}

function fail(seq: number, problem: ChainProblem, message: string): ChainFailure {
  return { ok: false, seq, problem, message }
}

function toIso(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString()
}
