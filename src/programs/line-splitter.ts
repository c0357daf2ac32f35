/** One whole line of a file. */
export interface SplitLine {
  /** Without its line end. Undefined when the line was over the limit and is not kept. */
  readonly text: string | undefined
  /** With its line end. */
  readonly bytes: number
  /** Its first bytes; none of a line over the limit. */
  readonly head: Buffer
}

export interface LineSplitter {
  /** Bytes of the line that has no end yet, whether they are kept or not. */
  readonly pending: number
  /** The lines that end within the chunk. Must be read to the end; the chunk may be used again afterwards. */
  split(chunk: Buffer): Generator<SplitLine>
  /** Forgets the unfinished line. */
  clear(): void
}

const LINE_END = 0x0a
const NOTHING = Buffer.alloc(0)
const SMALLEST = 4096
const HEAD_BYTES = 256

/**
 * Cuts bytes into lines. Every byte is looked at once and copied at most a constant number of times, however small
 * the pieces it comes in; at most about twice `maxLineBytes` are held.
 */
export function createLineSplitter(maxLineBytes: number): LineSplitter {
  let held = NOTHING
  let pending = 0

  const isTooLong = () => pending > maxLineBytes

  function hold(piece: Buffer) {
    const before = pending
    pending += piece.length
    if (isTooLong()) {
      held = NOTHING
      return
    }
    if (held.length < pending) {
      const larger = Buffer.allocUnsafe(Math.max(SMALLEST, pending * 2))
      held.copy(larger, 0, 0, before)
      held = larger
    }
    piece.copy(held, before)
  }

  function take(piece: Buffer): SplitLine {
    if (pending === 0 && piece.length <= maxLineBytes) {
      return lineOf(piece)
    }
    hold(piece)
    const line = isTooLong()
      ? { text: undefined, bytes: pending + 1, head: NOTHING }
      : lineOf(held.subarray(0, pending))
    clear()
    return line
  }

  function clear() {
    held = NOTHING
    pending = 0
  }

  return {
    get pending() {
      return pending
    },
    *split(chunk) {
      let start = 0
      for (;;) {
        const end = chunk.indexOf(LINE_END, start)
        if (end < 0) break
        yield take(chunk.subarray(start, end))
        start = end + 1
      }
      if (start < chunk.length) hold(chunk.subarray(start))
    },
    clear,
  }
}

function lineOf(content: Buffer): SplitLine {
  // A copy, since the chunk that the line is in is read into again.
  const head = Buffer.from(content.subarray(0, HEAD_BYTES))
  return { text: content.toString('utf8'), bytes: content.length + 1, head }
}
