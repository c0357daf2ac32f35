/** The record that a raw receiver writes. */
import { closeSync, openSync, readSync, watch } from 'node:fs'

/** `text`: submitted with Enter. `answered`: a key that its dialog took. */
export interface Entry {
  readonly text?: string
  readonly answered?: string
  /** Nanoseconds of the monotonic clock. */
  readonly ns?: string
}

export interface RecordReader {
  readonly entries: readonly Entry[]
  /** Resolves when `fits` accepts the entries; rejects on timeout. */
  until(fits: (entries: readonly Entry[]) => boolean, timeoutMs: number): Promise<void>
  close(): void
}

const CHUNK = 1 << 20

/** Times of arrivals that the benchmark itself sees. */
export function createRecord(): RecordReader & { add(entry: Entry): void } {
  const entries: Entry[] = []
  const watchers = new Set<() => void>()
  return {
    entries,
    add(entry) {
      entries.push(entry)
      for (const look of [...watchers]) look()
    },
    until(fits, timeoutMs) {
      return new Promise((resolve, reject) => {
        const look = () => {
          if (!fits(entries)) return
          clearTimeout(timer)
          watchers.delete(look)
          resolve()
        }
        const timer = setTimeout(() => {
          watchers.delete(look)
          reject(new Error(`the receiver did not get it in ${timeoutMs} ms`))
        }, timeoutMs)
        watchers.add(look)
        look()
      })
    },
    close() {},
  }
}

export function followRecord(path: string): RecordReader {
  const file = openSync(path, 'a+')
  const { entries, add, until } = createRecord()
  const chunk = Buffer.alloc(CHUNK)
  let offset = 0
  let rest = Buffer.alloc(0)

  function read() {
    for (;;) {
      const length = readSync(file, chunk, 0, CHUNK, offset)
      if (length === 0) break
      offset += length
      rest = Buffer.concat([rest, chunk.subarray(0, length)])
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        add(JSON.parse(rest.subarray(0, end).toString()) as Entry)
        rest = rest.subarray(end + 1)
      }
    }
  }

  const watcher = watch(path, read)
  return {
    entries,
    until,
    close() {
      watcher.close()
      closeSync(file)
    },
  }
}
