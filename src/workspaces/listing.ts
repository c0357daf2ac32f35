import { fstatSync, opendirSync, readdirSync } from 'node:fs'
import type { Directory } from './directory.ts'

/** What Node's types do not say: names come as bytes when asked for. */
interface RawEntry {
  readonly name: Buffer
}

/** A folder of that size holds some thousands of names at the most; to read it whole takes a quarter of the time. */
const SMALL_BYTES = 64 * 1024

/** The names in a folder as bytes, at most so many: a folder of a million is not read to its end. */
export function listNames(directory: Directory, most: number): Buffer[] {
  const { size } = fstatSync(directory.fd)
  if (size > 0 && size <= SMALL_BYTES) {
    const all = readdirSync(directory.self, { encoding: 'buffer' })
    return all.length <= most ? all : all.slice(0, most)
  }
  const names: Buffer[] = []
  const listing = opendirSync(directory.self.toString(), {
    encoding: 'buffer' as BufferEncoding,
    bufferSize: Math.min(most + 1, 1024),
  })
  try {
    while (names.length < most) {
      const entry = listing.readSync() as RawEntry | null
      if (entry === null) break
      names.push(entry.name)
    }
  } finally {
    listing.closeSync()
  }
  return names
}
