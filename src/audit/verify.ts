import { setImmediate } from 'node:timers/promises'
import { genesisHash, type HashedFields, hashEntry } from './chain.ts'

/** An entry as a store or an export gives it back. */
export interface StoredEntry extends Omit<HashedFields, 'at'> {
  /** ISO 8601, or epoch milliseconds. */
  at: string | number
  dataJson: string
  hash: string
  /** A store may leave it out, since it is the hash of the entry before. */
  prev?: string | undefined
}

/** What was known of the chain at some entry, kept apart from the entries. */
export interface ChainMark {
  seq: number
  hash: string
}

export interface VerifyOptions {
  chain: string
  /** Written with each entry and read in the same snapshot as the entries, so it must be the last one exactly. */
  expectedHead?: ChainMark | undefined
  /** Kept outside the store and written now and then: it may be older than the last entry, never newer. */
  witness?: ChainMark | undefined
}

type ChainProblem =
  | 'changed' // the entry does not match its hash
  | 'missing' // it was there: later ones are
  | 'reordered' // it comes later than it should
  | 'duplicate' // it comes a second time
  | 'cut_off' // it was the last one or before it, as the head or the witness shows
  | 'rewritten' // it matches its hash, but is not what was there
  | 'unrecorded' // it lies after the head: nobody who keeps the head wrote it

export type ChainVerdict =
  | { ok: true; count: number; head: ChainMark }
  | { ok: false; seq: number; problem: ChainProblem; message: string }

type Failure = ChainVerdict & { ok: false }

/** Long verifications let others run in between. */
const PAUSE_EVERY = 1000

/**
 * Follows a chain from its beginning and names the first bad entry (C12). Entries come in order of `seq`, one by
 * one, so that the log may be far larger than memory. A chain that was recomputed from some entry on can only be
 * told by the head or the witness; they then name the entry they know, and the first bad one may lie before it.
 */
export async function verifyChain(
  entries: Iterable<StoredEntry> | AsyncIterable<StoredEntry>,
  options: VerifyOptions,
): Promise<ChainVerdict> {
  let last: ChainMark = { seq: 0, hash: genesisHash(options.chain) }
  let gap: { before: number } | undefined
  let sincePause = 0
  for await (const entry of entries) {
    if (++sincePause === PAUSE_EVERY) {
      sincePause = 0
      await setImmediate()
    }
    if (gap !== undefined) {
      // Only whether the absent entry still comes is left to be found out.
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

function checkEntry(entry: StoredEntry, last: ChainMark, options: VerifyOptions): Failure | undefined {
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
    // The entry is sound and remembers another one before it.
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

function checkEnd(last: ChainMark, { expectedHead, witness }: VerifyOptions): Failure | undefined {
  const known = Math.max(expectedHead?.seq ?? 0, witness?.seq ?? 0)
  if (known <= last.seq) return undefined
  return fail(last.seq + 1, 'cut_off', `The chain ends with entry ${last.seq}, but reached entry ${known}`)
}

function outOfPlace(seq: number, before: number): Failure {
  return fail(seq, 'reordered', `Entry ${seq} comes after entry ${before}`)
}

function absent(seq: number, before: number): Failure {
  return fail(seq, 'missing', `Entry ${seq} is missing: after entry ${seq - 1} comes entry ${before}`)
}

function fail(seq: number, problem: ChainProblem, message: string): Failure {
  return { ok: false, seq, problem, message }
}

function toIso(time: number): string {
  const date = new Date(time)
  return Number.isNaN(date.getTime()) ? String(time) : date.toISOString()
}
