/** Looks through all that a program has shown, without holding it or anyone up. */
import { createReadStream } from 'node:fs'
import { createFrameFilter, FRAME_END } from './evidence.ts'
import { createPlainText } from './plain-text.ts'

/** Whether a line of the program's own, not one of ours that it echoed, fits. Rejects when the log cannot be read. */
export async function isInLog(path: string, from: number, pattern: RegExp): Promise<boolean> {
  const isProgramsOwn = createFrameFilter()
  let isInFrame = false
  let isShown = false

  function take(line: string) {
    // What is left of the log began within a message.
    if (from > 0 && !isInFrame && FRAME_END.test(line)) isShown = false
    isInFrame = !isProgramsOwn(line)
    if (!isInFrame && pattern.test(line)) isShown = true
  }

  const text = createPlainText(take)
  for await (const bytes of createReadStream(path, { start: from })) text.push(bytes as Buffer)
  take(text.line())
  return isShown
}
