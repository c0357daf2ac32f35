import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { linesOf } from '../../programs/line-splitter.ts'
import { type LogRecord, parseRecord } from './record.ts'

/** The conversation on disk: one record per line, append-only. */
export interface Journal {
  /**
   * Resolves once the record is on disk. If it rejects, the record is not in the file, or `isMended` is
   * false.
   */
  append(record: LogRecord): Promise<void>
  /** Like `append`, but a crash may lose the record: for facts that can be found out again. */
  note(record: LogRecord): Promise<void>
  /** Whether the file holds exactly the appended records. */
  readonly isMended: boolean
  close(): Promise<void>
}

const NEWLINE = 10

/**
 * Passes every record in the file to `take`, then opens it for appending. Cuts off a record that a crash left
 * incomplete.
 */
export async function openJournal(
  file: string,
  take: (record: LogRecord) => void,
  onGarbage: (line: number) => void,
): Promise<Journal> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  const handle = await open(file, 'a+', 0o600)
  let size: number
  try {
    size = await endOfLastLine(handle)
    await handle.truncate(size)
    await readRecords(file, take, onGarbage)
  } catch (error) {
    await handle.close()
    throw error
  }
  let isMended = true
  let isClosed = false
  let last: Promise<unknown> = Promise.resolve()

  async function mend() {
    await handle.truncate(size)
    isMended = true
  }

  async function write(record: LogRecord, isDurable: boolean) {
    if (!isMended) await mend()
    const line = Buffer.from(`${JSON.stringify(record)}\n`)
    try {
      await handle.appendFile(line)
      if (isDurable) await handle.datasync()
    } catch (error) {
      isMended = false
      await mend().catch(() => {})
      throw error
    }
    size += line.length
  }

  function inOrder(record: LogRecord, isDurable: boolean): Promise<void> {
    const written = last.then(() => write(record, isDurable))
    last = written.catch(() => {})
    return written
  }

  return {
    append: (record) => inOrder(record, true),
    note: (record) => (isClosed ? Promise.resolve() : inOrder(record, false)),
    get isMended() {
      return isMended
    },
    async close() {
      isClosed = true
      await last
      await handle.close()
    },
  }
}

/** Opens the file separately, so it can be called at any time. Ignores a line without its newline. */
export async function readRecords(
  file: string,
  take: (record: LogRecord) => void,
  onGarbage: (line: number) => void = () => {},
): Promise<void> {
  let number = 0
  for await (const line of linesOf(file)) {
    number += 1
    if (line === '') continue
    const record = parseRecord(line)
    if (record === undefined) onGarbage(number)
    else take(record)
  }
}

async function endOfLastLine(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat()
  const block = Buffer.alloc(64 * 1024)
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - block.length)
    const { bytesRead } = await handle.read(block, 0, end - start, start)
    const found = block.subarray(0, bytesRead).lastIndexOf(NEWLINE)
    if (found >= 0) return start + found + 1
    end = start
  }
  return 0
}
