import { createReadStream, existsSync } from 'node:fs'

/** A complete line of a file. */
export interface SplitLine {
  /** Without its newline. Undefined if the line exceeded the limit. */
  readonly text: string | undefined
  /** Including its newline. */
  readonly bytes: number
  /** The line's first bytes; empty for a line over the limit. */
  readonly head: Buffer
}

interface LineSplitter {
  /** Bytes of the unfinished line, whether retained or not. */
  readonly pending: number
  /** The lines that end within the chunk. Must be read to the end; the chunk may be reused afterwards. */
  split(chunk: Buffer): Generator<SplitLine>
  /** Drops the unfinished line. */
  clear(): void
}

const LINE_END = 0x0a
const NOTHING = Buffer.alloc(0)
const SMALLEST = 4096
const HEAD_BYTES = 256

/**
 * Splits bytes into lines. Scans every byte once and copies it a constant number of times, however small the
 * chunks; retains at most about twice `maxLineBytes`.
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
  // Copy, because the chunk's memory is reused.
  const head = Buffer.from(content.subarray(0, HEAD_BYTES))
  return { text: content.toString('utf8'), bytes: content.length + 1, head }
}

/** Longer lines are not ours, and not retained. */
const MAX_LINE_BYTES = 256 * 2 ** 20
const NEWLINE_BYTES = Buffer.from('\n')

/**
 * The lines of a file as it is now; none if there is no file, as before a program's first prompt. Node's
 * readline would also split at U+2028 and U+2029, which may appear within JSON.
 */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (!existsSync(file)) return
  const splitter = createLineSplitter(MAX_LINE_BYTES)
  for await (const chunk of createReadStream(file)) {
    for (const { text } of splitter.split(chunk)) if (text !== undefined) yield text
  }
  if (splitter.pending === 0) return
  // The caller decides whether a last line without newline is complete.
  for (const { text } of splitter.split(NEWLINE_BYTES)) if (text !== undefined) yield text
}
