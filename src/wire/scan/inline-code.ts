/**
 * Inline code as CommonMark has it: a run of backticks is closed by the next run of the same length in the same
 * paragraph, and is literal if there is none. Nothing is looked at until a possible command asks.
 */
import { BACKTICK, NEWLINE } from '../ascii.ts'
import { lineStart } from './lines.ts'
import type { Window } from './window.ts'

/** A longer run of backticks delimits nothing. */
const LONGEST_RUN = 32

/** How far a run's other half is looked for; a paragraph that goes on longer counts as code, to be safe. */
const LOOK_AHEAD = 131_072

/** The same, where it must be on the same line. */
const LINE_LOOK_AHEAD = 256

/** How far back a paragraph's beginning is looked for, before everything since the last known point is read. */
const LOOK_BACK = 4096

export type Verdict = 'code' | 'text' | 'unsettled'

export interface InlineCode {
  /** Whether `at` is inside inline code. Asked with growing offsets; unsettled until the paragraph is complete. */
  at(at: number, isFinal: boolean): Verdict
  /** Whether `at` is inside inline code that begins and ends on its line, and behind `floor`. */
  onLine(at: number, floor: number, isFinal: boolean): Verdict
  /** Reads on to `to`, or as far as can be told, so that earlier bytes may go. Returns how far. */
  advance(to: number): number
  /** Something other than text ends at `at`: runs before it have no other half after it. */
  restart(at: number): void
}

export function openInlineCode(window: Window): InlineCode {
  let examined = 0
  /** Length of the run that ends at `examined` and may go on. */
  let run = 0
  /** Lengths of the runs that still lack their other half, in order. */
  const pending: number[] = []
  /** No backtick lies between these two. */
  let clearFrom = 0
  let clearTo = 0
  const ahead = openLookAhead(window)
  const line = openLine(window)

  function endRun() {
    meetRun(pending, run)
    run = 0
  }

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

  function advance(to: number): number {
    if (to <= examined) return examined
    if (run === 0 && pending.length === 0 && !hasBacktick(examined, to)) {
      examined = to
      return examined
    }
    const paragraph = lastBreak(examined, to)
    if (paragraph >= 0) restart(paragraph)
    const { bytes, base } = window
    let i = examined - base
    for (const stop = to - base; i < stop; i++) {
      const byte = bytes[i]!
      if (byte === BACKTICK) {
        run++
        continue
      }
      if (run > 0) endRun()
      if (byte !== NEWLINE || pending.length === 0) continue
      const next = lineStart(bytes, i + 1)
      if (next === 'unsettled') break
      if (next === 'break') clear(pending)
    }
    examined = base + i
    if (run > 0 && i < bytes.length && bytes[i] !== BACKTICK) endRun()
    return examined
  }

  function restart(at: number) {
    examined = at
    run = 0
    clear(pending)
  }

  return {
    at(at, isFinal) {
      advance(at)
      if (pending.length === 0) return 'text'
      const verdict = ahead.closes(pending, at, isFinal)
      if (verdict === 'text') restart(at)
      return verdict
    },
    onLine: line.closes,
    advance,
    restart,
  }
}

/** Takes a run of backticks into account. A run that finds its equal makes code of all that lies between. */
function meetRun(pending: number[], run: number) {
  const partner = pending.indexOf(run)
  if (partner >= 0) pending.length = partner
  else if (run <= LONGEST_RUN) pending.push(run)
}

/** Setting a length is slow, even to what it is. */
function clear(pending: number[]) {
  if (pending.length > 0) pending.length = 0
}

/** Inline code within one line, which is read once however often it is asked. */
function openLine(window: Window) {
  let read = 0
  const pending: number[] = []

  function closes(at: number, floor: number, isFinal: boolean): Verdict {
    const { bytes, base } = window
    const known = read >= floor && read <= at ? read : floor
    if (known !== read) clear(pending)
    let i = at - base
    while (i > known - base && bytes[i - 1] !== NEWLINE) i--
    if (i > known - base) clear(pending)
    read = at
    for (let run = 0; i <= at - base; i++) {
      if (bytes[i] === BACKTICK) run++
      else if (run > 0) {
        meetRun(pending, run)
        run = 0
      }
    }
    if (pending.length === 0) return 'text'
    let run = 0
    for (i = at - base; i < at - base + LINE_LOOK_AHEAD; i++) {
      if (i >= bytes.length && !isFinal) return 'unsettled'
      if (bytes[i] === BACKTICK) {
        run++
        continue
      }
      if (run > 0 && pending.includes(run)) return 'code'
      if (i >= bytes.length || bytes[i] === NEWLINE) return 'text'
      run = 0
    }
    return 'text'
  }

  return { closes }
}

/** Looks for the other half of pending runs behind a point, and reads each paragraph once however often it is asked. */
function openLookAhead(window: Window) {
  let from = -1
  let read = -1
  let isOver = false
  /** Where the last run of each length begins, between `from` and `read`. */
  const lastOf = new Float64Array(LONGEST_RUN + 1)

  function closes(pending: readonly number[], at: number, isFinal: boolean): Verdict {
    if (at < from || at > read) {
      from = at
      read = at
      isOver = false
      lastOf.fill(-1)
    }
    if (pending.some((length) => lastOf[length]! > at)) return 'code'
    const { bytes, base } = window
    let run = 0
    for (let i = read - base; !isOver; i++) {
      if (base + i - at > LOOK_AHEAD) {
        read = base + i - run
        return 'code'
      }
      const byte = bytes[i]
      if (byte === BACKTICK) {
        run++
        continue
      }
      const isEnd = i >= bytes.length
      if (isEnd && !isFinal) {
        read = base + i - run
        return 'unsettled'
      }
      if (run > 0) {
        read = base + i
        if (run <= LONGEST_RUN) lastOf[run] = read - run
        if (pending.includes(run)) return 'code'
        run = 0
      }
      if (byte === NEWLINE) {
        const next = lineStart(bytes, i + 1)
        read = base + i
        if (next === 'unsettled' && !isFinal) return 'unsettled'
        isOver = next === 'break'
      }
      if (isEnd) {
        read = base + i
        isOver = true
      }
    }
    return 'text'
  }

  return { closes }
}
