import { fstatSync, opendirSync, readdirSync } from 'node:fs'
import type { Directory } from './directory.ts'

/** Node's types do not know that names can come as bytes. */
interface RawEntry {
  readonly name: Buffer
}

/** A folder of that size holds some thousands of names at the most; to read it whole takes a quarter of the time. */
const SMALL_BYTES = 64 * 1024
const PIECE = 1024

/** The names in a folder as bytes, at most so many: a folder of a million is not read to its end. */
export function listNames(directory: Directory, most: number): Buffer[] {
  const { size } = fstatSync(directory.fd)
  if (isSmall(size)) return readdirSync(directory.self, { encoding: 'buffer' }).slice(0, most)
  return [...readNames(directory, Math.min(most + 1, PIECE)).take(most)]
}

/** All names, without holding all of them in memory. */
export function namesIn(directory: Directory): Iterable<Buffer> {
  const { size } = fstatSync(directory.fd)
  return isSmall(size) ? readdirSync(directory.self, { encoding: 'buffer' }) : readNames(directory, PIECE)
}

const isSmall = (size: number) => size > 0 && size <= SMALL_BYTES

function* readNames(directory: Directory, bufferSize: number): Generator<Buffer, void> {
  const listing = opendirSync(directory.self.toString(), {
    encoding: 'buffer' as BufferEncoding,
    bufferSize,
  })
  try {
    for (;;) {
      const entry = listing.readSync() as RawEntry | null
      if (entry === null) return
      yield entry.name
    }
  } finally {
    listing.closeSync()
  }
}
