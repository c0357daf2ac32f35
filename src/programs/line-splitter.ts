import { createReadStream, existsSync } from 'node:fs'

/** A complete line of a file or a pipe. */
export interface SplitLine {
  /** Without its newline. Undefined if the line exceeded the limit. */
  readonly text: string | undefined
  /** Including its newline. */
  readonly bytes: number
  /** The line's first bytes. */
  readonly head: Buffer
}

const NEWLINE = Buffer.from('\n')
const NOTHING = Buffer.alloc(0)
const SMALLEST = 4096
const HEAD_BYTES = 1024

/**
 * Splits bytes into lines. Scans every byte once and copies it a constant number of times, however small the
 * chunks; retains at most about twice `maxLineBytes`.
 */
export function createLineSplitter(maxLineBytes: number) {
  let held = NOTHING
  let pending = 0

  function hold(piece: Buffer) {
    const before = pending
    pending += piece.length
    if (before > maxLineBytes) return
    if (pending > maxLineBytes) {
      held = Buffer.concat([held.subarray(0, before), piece.subarray(0, HEAD_BYTES)]).subarray(0, HEAD_BYTES)
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
    if (pending === 0 && piece.length <= maxLineBytes) return lineOf(piece)
    hold(piece)
    const line =
      pending > maxLineBytes
        ? { text: undefined, bytes: pending + 1, head: held }
        : lineOf(held.subarray(0, pending))
    clear()
    return line
  }

  function clear() {
    held = NOTHING
    pending = 0
  }

  return {
    /** Bytes of the unfinished line, whether retained or not. */
    get pending() {
      return pending
    },
    /** The lines that end within the chunk. Must be read to the end; the chunk may be reused afterwards. */
    *split(chunk: Buffer): Generator<SplitLine> {
      let start = 0
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
        yield take(chunk.subarray(start, end))
        start = end + 1
      }
      if (start < chunk.length) hold(chunk.subarray(start))
    },
    /** Drops the unfinished line. */
    clear,
  }
}

function lineOf(content: Buffer): SplitLine {
  // Copy, because the chunk's memory is reused.
  const head = Buffer.from(content.subarray(0, HEAD_BYTES))
  return { text: content.toString('utf8'), bytes: content.length + 1, head }
}

/** The lines of a source, including a last one without newline. */
export async function* splitLines(
  source: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<SplitLine> {
  const splitter = createLineSplitter(maxLineBytes)
  for await (const chunk of source) yield* splitter.split(chunk)
  if (splitter.pending > 0) yield* splitter.split(NEWLINE)
}

/** Longer lines are not ours, and not retained. */
const MAX_FILE_LINE_BYTES = 256 * 2 ** 20

/**
 * The lines of a file as it is now; none if there is no file, as before a program's first prompt. Node's
 * readline would also split at U+2028 and U+2029, which may appear within JSON.
 */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (!existsSync(file)) return
  for await (const { text } of splitLines(createReadStream(file), MAX_FILE_LINE_BYTES))
    if (text !== undefined) yield text
}

/** The value of a line of JSON; undefined if the line is something else, such as half a record. */
export function parseJsonLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
