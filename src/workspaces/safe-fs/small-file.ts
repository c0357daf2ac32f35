import { closeSync, readSync } from 'node:fs'
import { formatBytes } from '../limits.ts'
import { problem } from '../problem.ts'
import { type Directory, type Opened, openFile, showIn } from './directory.ts'

/** Reads a whole file up to a limit. Refuses a file with a second name, which may be outside. */
export function readSmall(directory: Directory, name: string, limit: number): Opened<Buffer> {
  const opened = openFile(directory, name)
  if (!opened.ok) return opened
  const { fd, stat } = opened.value
  const shown = showIn(directory, name)
  try {
    if (stat.nlink > 1n) {
      return {
        ok: false,
        problem: problem('hard_link', shown, 'has another name, so that it may not be the agent’s'),
      }
    }
    if (stat.size > BigInt(limit)) {
      const [size, most] = [formatBytes(Number(stat.size)), formatBytes(limit)]
      // A rounded number would hide a single byte over the limit.
      const why = `is ${size === most ? `${stat.size} bytes` : size} large, and ${most} is the limit`
      return { ok: false, problem: problem('too_large', shown, why) }
    }
    return { ok: true, value: readWhole(fd, Number(stat.size)) }
  } finally {
    closeSync(fd)
  }
}

/** The file may have become shorter; anything appended now is read next time. */
function readWhole(fd: number, size: number): Buffer {
  const buffer = Buffer.allocUnsafe(size)
  let done = 0
  while (done < size) {
    const count = readSync(fd, buffer, done, size - done, done)
    if (count === 0) break
    done += count
  }
  return buffer.subarray(0, done)
}
