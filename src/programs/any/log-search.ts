/** Looks through all that a program has shown, without holding it or anyone up. */
import { createReadStream } from 'node:fs'
import { createFrameFilter, FRAME_END } from './evidence.ts'
import { createPlainText } from './plain-text.ts'

/**
 * Of which of the messages a line of the program's own, not one of ours that it echoed, fits its pattern. Rejects when
 * the log cannot be read.
 */
export async function findInLog(
  path: string,
  from: number,
  patterns: ReadonlyMap<string, RegExp>,
): Promise<ReadonlySet<string>> {
  const isProgramsOwn = createFrameFilter()
  const shown = new Set<string>()
  let isInFrame = false

  function take(line: string) {
    // What is left of the log began within a message.
    if (from > 0 && !isInFrame && FRAME_END.test(line)) shown.clear()
    isInFrame = !isProgramsOwn(line)
    if (isInFrame) return
    for (const [id, pattern] of patterns) if (pattern.test(line)) shown.add(id)
  }

  const text = createPlainText(take)
  for await (const bytes of createReadStream(path, { start: from })) text.push(bytes as Buffer)
  take(text.line())
  return shown
}
