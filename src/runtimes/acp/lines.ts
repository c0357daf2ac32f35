const NEWLINE = 0x0a
const HEAD_KEPT = 1024

export interface Line {
  readonly text: string
  /** It was over the limit, and only its beginning is here. */
  readonly isCut: boolean
}

/** Splits bytes into lines, holding no more than `limit` bytes of one, however long it goes on. */
export async function* readLines(source: AsyncIterable<Buffer>, limit: number): AsyncGenerator<Line> {
  let parts: Buffer[] = []
  let held = 0
  let isCut = false

  const add = (part: Buffer) => {
    if (isCut) return
    parts.push(part)
    held += part.length
    if (held <= limit) return
    parts = [Buffer.from(Buffer.concat(parts).subarray(0, HEAD_KEPT))]
    isCut = true
  }
  const take = (): Line => {
    const line = { text: Buffer.concat(parts).toString('utf8'), isCut }
    parts = []
    held = 0
    isCut = false
    return line
  }

  for await (const chunk of source) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end))
      yield take()
      start = end + 1
    }
    if (start < chunk.length) add(chunk.subarray(start))
  }
  if (held > 0) yield take()
}
