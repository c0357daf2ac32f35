import { createReadStream, existsSync } from 'node:fs'
import { createLineSplitter } from './line-splitter.ts'

/** Longer ones are no records of ours, and not held in memory. */
const MAX_LINE_BYTES = 256 * 2 ** 20
const LINE_END = Buffer.from('\n')

/**
 * The lines of a file as it is now; none where there is no file, as before a program's first prompt. Not by Node's
 * readline: it also splits at U+2028 and U+2029, which stand as they are within JSON.
 */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (!existsSync(file)) return
  const splitter = createLineSplitter(MAX_LINE_BYTES)
  for await (const chunk of createReadStream(file)) {
    for (const { text } of splitter.split(chunk)) if (text !== undefined) yield text
  }
  if (splitter.pending === 0) return
  // Whether the last line is whole without its end is for whoever reads it to find out.
  for (const { text } of splitter.split(LINE_END)) if (text !== undefined) yield text
}
