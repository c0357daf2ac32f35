/** Splits a text that comes in pieces into lines. Text after the last line end comes last. */
export async function* readLines(pieces: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = ''
  for await (const piece of pieces) {
    const lines = (rest + piece).split('\n')
    rest = lines.pop()!
    yield* lines
  }
  if (rest !== '') yield rest
}

interface ServerEvent {
  id: string | undefined
  /** Undefined for a block that only has the position of the stream. */
  data: string | undefined
}

/** Parses server-sent events as this service writes them: lines end with a line feed, data is one line. */
export async function* readEvents(pieces: AsyncIterable<string>): AsyncGenerator<ServerEvent> {
  let id: string | undefined
  let data: string | undefined
  for await (const line of readLines(pieces)) {
    if (line === '') {
      if (id !== undefined || data !== undefined) yield { id, data }
      id = undefined
      data = undefined
    } else if (line.startsWith('id: ')) id = line.slice(4)
    else if (line.startsWith('data: ')) data = line.slice(6)
  }
  // A block without its empty line is incomplete, and comes again after a reconnection.
}
