/**
 * Inline code as CommonMark has it: a run of backticks is closed by the next run of the same length in the same
 * paragraph, and is literal if there is none. Nothing is looked at until a possible command asks.
 */
import { BACKTICK, NEWLINE } from '../ascii.ts'
import { lineStart } from './lines.ts'
import { LONGEST_RUN, openPendingRuns, type PendingRuns } from './runs.ts'
import { includesByte } from './search.ts'
import type { Window } from './window.ts'

/** How far a run's other half is looked for; a paragraph that goes on longer counts as code, to be safe. */
const LOOK_AHEAD = 131_072

/** The same, where it must be on the same line. */
const LINE_LOOK_AHEAD = 256

/** How far back a paragraph's beginning is looked for, before everything since the last known point is read. */
const LOOK_BACK = 512

/** How much may stay unread as long as nobody asks. */
const LAG = 16_384

export type Verdict = 'code' | 'text' | 'unsettled'

export interface InlineCode {
  /** Whether `at` is inside inline code. Asked with growing offsets; unsettled until the paragraph is complete. */
  at(at: number, isFinal: boolean): Verdict
  /** Whether `at` is inside inline code that begins and ends on its line, and behind `floor`. */
  onLine(at: number, floor: number, isFinal: boolean): Verdict
  /** Reads on towards `to`, now and then, so that earlier bytes may go. Returns how far. */
  advance(to: number): number
  /** Something other than text ends at `at`: runs before it have no other half after it. */
  restart(at: number): void
}

export function openInlineCode(window: Window): InlineCode {
  const pending = openPendingRuns()
  const ahead = openLookAhead(window)
  const line = openLine(window)
  let examined = 0
  /** Length of the run that ends at `examined` and may go on. */
  let run = 0
  /** Between `clearFrom` and `clearTo` there is no backtick. */
  let clearFrom = 0
  let clearTo = 0

  function hasBacktick(from: number, to: number): boolean {
    if (from < clearFrom || from > clearTo) clearTo = from
    clearFrom = from
    if (clearTo >= to) return false
    const found = window.bytes.indexOf(BACKTICK, clearTo - window.base)
    clearTo = found < 0 ? window.end : window.base + found
    return clearTo < to
  }

  function lastBreak(from: number, to: number): number {
    const { bytes, base } = window
    const floor = Math.max(from, to - LOOK_BACK) - base
    for (let i = to - base - 1; i >= floor; i--) {
      if (bytes[i] === NEWLINE && lineStart(bytes, i + 1) === 'break') return base + i + 1
    }
    return -1
  }

  function readOn(to: number): number {
    if (to > examined) readTo(to)
    const isRunOver = run > 0 && examined < window.end && window.bytes[examined - window.base] !== BACKTICK
    if (isRunOver) {
      pending.meet(run)
      run = 0
    }
    return examined
  }

  /** Without a backtick, or one that lacks its other half, there is nothing to read. */
  function skipPlain(to: number): boolean {
    if (run > 0 || !pending.isEmpty || hasBacktick(examined, to)) return false
    examined = to
    return true
  }

  function readTo(to: number) {
    const isClear = examined >= clearFrom && to <= clearTo
    const paragraph = isClear && pending.isEmpty ? -1 : lastBreak(examined, to)
    if (paragraph >= 0) restart(paragraph)
    if (skipPlain(to)) return
    const { bytes, base } = window
    const stop = to - base
    let length = run
    let i = examined - base
    for (; i < stop; i++) {
      const byte = bytes[i]!
      if (byte === BACKTICK) {
        length++
        continue
      }
      if (length > 0) pending.meet(length)
      length = 0
      if (byte !== NEWLINE || pending.isEmpty) continue
      const next = lineStart(bytes, i + 1)
      if (next === 'unsettled') break
      if (next === 'break') pending.clear()
    }
    run = length
    examined = base + i
  }

  function restart(at: number) {
    examined = at
    run = 0
    pending.clear()
  }

  return {
    at(at, isFinal) {
      readOn(at)
      if (pending.isEmpty) return 'text'
      const verdict = ahead.closes(pending, at, isFinal)
      if (verdict === 'text') restart(at)
      return verdict
    },
    onLine: line.closes,
    advance(to) {
      if (to - examined < LAG || skipPlain(to)) return examined
      return readOn(to)
    },
    restart,
  }
}

/** Inline code within one line, which is read once however often it is asked. */
function openLine(window: Window) {
  const pending = openPendingRuns()
  let read = 0

  function closes(at: number, floor: number, isFinal: boolean): Verdict {
    const { bytes, base } = window
    const known = read >= floor && read <= at ? read : floor
    if (known !== read) pending.clear()
    read = at
    if (pending.isEmpty && !includesByte(bytes, BACKTICK, known - base, at - base)) return 'text'
    let i = at - base
    while (i > known - base && bytes[i - 1] !== NEWLINE) i--
    if (i > known - base) pending.clear()
    meetRuns(bytes, i, at - base)
    return pending.isEmpty ? 'text' : lookAhead(bytes, at - base, isFinal)
  }

  function meetRuns(bytes: Uint8Array, from: number, to: number) {
    let run = 0
    for (let i = from; i <= to; i++) {
      if (bytes[i] === BACKTICK) run++
      else if (run > 0) {
        pending.meet(run)
        run = 0
      }
    }
  }

  function lookAhead(bytes: Uint8Array, from: number, isFinal: boolean): Verdict {
    let run = 0
    for (let i = from; i < from + LINE_LOOK_AHEAD; i++) {
      if (i >= bytes.length && !isFinal) return 'unsettled'
      if (bytes[i] === BACKTICK) {
        run++
        continue
      }
      if (pending.has(run)) return 'code'
      if (i >= bytes.length || bytes[i] === NEWLINE) return 'text'
      run = 0
    }
    return 'text'
  }

  return { closes }
}

/** Looks for the other half of pending runs behind a point, and reads each paragraph once however often it is asked. */
function openLookAhead(window: Window) {
  let read = -1
  /** Length of the run that ends at `read` and may go on. */
  let run = 0
  let isOver = false
  /** Where the last run of each length before `read` begins. */
  const lastOf = new Float64Array(LONGEST_RUN + 1).fill(-1)

  function closes(pending: PendingRuns, at: number, isFinal: boolean): Verdict {
    if (at > read) {
      read = at
      run = 0
      isOver = false
    }
    if (pending.largestOf(lastOf) > at) return 'code'
    return isOver ? 'text' : readOn(pending, at, isFinal)
  }

  function readOn(pending: PendingRuns, at: number, isFinal: boolean): Verdict {
    const { bytes, base } = window
    const size = bytes.length
    const limit = at - base + LOOK_AHEAD
    let verdict: Verdict = 'code'
    let length = run
    let i = read - base
    for (; i <= limit; i++) {
      if (i < size && bytes[i] === BACKTICK) {
        length++
        continue
      }
      if (i >= size && !isFinal) {
        verdict = 'unsettled'
        break
      }
      if (length > 0) {
        const isPartner = pending.has(length)
        if (length <= LONGEST_RUN) lastOf[length] = base + i - length
        length = 0
        if (isPartner) break
      }
      const next = i < size ? (bytes[i] === NEWLINE ? lineStart(bytes, i + 1) : 'plain') : 'break'
      if (next === 'plain' || (next === 'unsettled' && isFinal)) continue
      verdict = next === 'break' ? 'text' : 'unsettled'
      break
    }
    read = base + i
    run = length
    isOver = verdict === 'text'
    return verdict
  }

  return { closes }
}
