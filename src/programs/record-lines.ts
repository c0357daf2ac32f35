import { createReadStream, existsSync } from 'node:fs'
import { createInterface } from 'node:readline'

/** The lines of a file as it is now; none where there is no file, as before a program's first prompt. */
export async function* linesOf(file: string): AsyncGenerator<string> {
  if (!existsSync(file)) return
  yield* createInterface({ input: createReadStream(file), crlfDelay: Number.POSITIVE_INFINITY })
}
