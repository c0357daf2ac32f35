/**
 * Inline code as in CommonMark: a run of backticks is closed by the next run of the same length in the same paragraph,
 * and is literal if there is none.
 */
import { BACKTICK, NEWLINE } from '../ascii.ts'
import { lineStart } from './markdown-blocks.ts'
import type { TextWindow } from './window.ts'

/** The closing run must be within this many bytes. A longer paragraph counts as code, which is the safe choice. */
const LOOK_AHEAD = 131_072

/** The same for a closing run that must be on the same line. */
const LINE_LOOK_AHEAD = 256

/** A longer run of backticks delimits nothing. */
const LONGEST_RUN = 31

type CodeOrText = 'code' | 'text' | 'unsettled'

interface InlineCode {
  /** Whether `at` is inside inline code. Offsets must grow. Unsettled until the paragraph is complete. */
  at(at: number, isFinal: boolean): CodeOrText
  /** Whether `at` is inside inline code that begins and ends on its line, and begins after `floor`. */
  onLine(at: number, floor: number, isFinal: boolean): CodeOrText
  /** Reads on to `to` and returns the offset up to which the text is no longer needed. */
  advance(to: number): number
  /** Starts over at `at`, because something other than text ends there: code does not reach across it. */
  restart(at: number): void
}

export function openInlineCode(window: TextWindow): InlineCode {
  const open = openRuns()
  const ahead = openLookAhead(window)
  const line = openLine(window)
  let examined = 0
  /** Length of the run that ends at `examined` and may continue. */
  let run = 0

  function readTo(to: number): number {
    const { bytes, base } = window
    const stop = to - base
    let i = examined - base
    for (; i < stop; i++) {
      const byte = bytes[i]!
      if (byte === BACKTICK) {
        run++
        continue
      }
      endRun()
      if (byte !== NEWLINE || open.isEmpty()) continue
      const next = lineStart(bytes, i + 1)
      if (next === 'unsettled') break
      if (next === 'break') open.clear()
    }
    examined = Math.max(examined, base + i)
    if (examined < window.end && bytes[examined - base] !== BACKTICK) endRun()
    return examined
  }

  function endRun() {
    if (run === 0) return
    open.meet(run)
    run = 0
  }

  function restart(at: number) {
    examined = at
    run = 0
    open.clear()
  }

  return {
    at(at, isFinal) {
      readTo(at)
      if (open.isEmpty()) return 'text'
      const answer = ahead.closes(open, at, isFinal)
      if (answer === 'text') restart(at)
      return answer
    },
    onLine: line.closes,
    advance: readTo,
    restart,
  }
}

/** Inline code within one line. Each byte of the line is read once, however often the caller asks. */
function openLine(window: TextWindow) {
  const open = openRuns()
  let read = 0

  function closes(at: number, floor: number, isFinal: boolean): CodeOrText {
    const { bytes, base } = window
    const known = read >= floor && read <= at ? read : floor
    if (known !== read) open.clear()
    read = at
    let i = at - base
    while (i > known - base && bytes[i - 1] !== NEWLINE) i--
    if (i > known - base) open.clear()
    meetRuns(bytes, i, at - base)
    return open.isEmpty() ? 'text' : lookAhead(bytes, at - base, isFinal)
  }

  function meetRuns(bytes: Uint8Array, from: number, to: number) {
    let run = 0
    for (let i = from; i <= to; i++) {
      if (bytes[i] === BACKTICK) run++
      else if (run > 0) {
        open.meet(run)
        run = 0
      }
    }
  }

  function lookAhead(bytes: Uint8Array, from: number, isFinal: boolean): CodeOrText {
    let run = 0
    for (let i = from; i < from + LINE_LOOK_AHEAD; i++) {
      if (i >= bytes.length && !isFinal) return 'unsettled'
      if (bytes[i] === BACKTICK) {
        run++
        continue
      }
      if (open.has(run)) return 'code'
      if (i >= bytes.length || bytes[i] === NEWLINE) return 'text'
      run = 0
    }
    return 'text'
  }

  return { closes }
}

/** Searches for closing runs after a point. Each paragraph is read once, however often the caller asks. */
function openLookAhead(window: TextWindow) {
  let read = -1
  /** Length of the run that ends at `read` and may continue. */
  let run = 0
  let isOver = false
  /** For each length, the offset of the last run before `read`. */
  const lastOf = new Float64Array(LONGEST_RUN + 1).fill(-1)

  function closes(open: OpenRuns, at: number, isFinal: boolean): CodeOrText {
    if (at > read) {
      read = at
      run = 0
      isOver = false
    }
    if (open.largestOf(lastOf) > at) return 'code'
    return isOver ? 'text' : readOn(open, at, isFinal)
  }

  function readOn(open: OpenRuns, at: number, isFinal: boolean): CodeOrText {
    const { bytes, base } = window
    const size = bytes.length
    const limit = at - base + LOOK_AHEAD
    let answer: CodeOrText = 'code'
    let length = run
    let i = read - base
    for (; i <= limit; i++) {
      if (i < size && bytes[i] === BACKTICK) {
        length++
        continue
      }
      if (i >= size && !isFinal) {
        answer = 'unsettled'
        break
      }
      if (length > 0) {
        const isPartner = open.has(length)
        if (length <= LONGEST_RUN) lastOf[length] = base + i - length
        length = 0
        if (isPartner) break
      }
      const next = i < size ? (bytes[i] === NEWLINE ? lineStart(bytes, i + 1) : 'plain') : 'break'
      if (next === 'plain' || (next === 'unsettled' && isFinal)) continue
      answer = next === 'break' ? 'text' : 'unsettled'
      break
    }
    read = base + i
    run = length
    isOver = answer === 'text'
    return answer
  }

  return { closes }
}

/**
 * Runs of backticks that have no closing run yet, in text order. A closing run turns everything since its opening run into
 * code, so it removes the runs between them, too. No two open runs have the same length, so a bit per length is enough.
 */
interface OpenRuns {
  isEmpty(): boolean
  meet(length: number): void
  has(length: number): boolean
  /** The largest of `numbers`, which has one number per length, among the lengths of open runs. */
  largestOf(numbers: Float64Array): number
  clear(): void
}

function openRuns(): OpenRuns {
  const lengths: number[] = []
  let bits = 0

  function has(length: number): boolean {
    return length <= LONGEST_RUN && (bits & (1 << length)) !== 0
  }

  return {
    isEmpty: () => bits === 0,
    meet(length) {
      if (length > LONGEST_RUN) return
      if (!has(length)) {
        lengths.push(length)
        bits |= 1 << length
        return
      }
      while (has(length)) bits &= ~(1 << lengths.pop()!)
    },
    has,
    largestOf(numbers) {
      let largest = Number.NEGATIVE_INFINITY
      for (const length of lengths) largest = Math.max(largest, numbers[length]!)
      return largest
    },
    clear() {
      lengths.length = 0
      bits = 0
    },
  }
}
