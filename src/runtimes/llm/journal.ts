import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { linesOf, parseJsonLine } from '../../programs/line-splitter.ts'

const number = z.int().nonnegative()
const call = z.object({
  id: z.string(),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  invalid: z.string().optional(),
})

/** How a turn ended. The model learns of every end except `answered`. */
const ENDS = ['answered', 'interrupted', 'max_steps', 'refused', 'too_long'] as const
export type LlmTurnEnd = (typeof ENDS)[number]

/** A line of the conversation file. Numbers ascend and serve as keys. */
export const LogRecord = z.discriminatedUnion('type', [
  /** Starts a turn with its input. */
  z.object({
    type: z.literal('user'),
    n: number,
    at: z.number(),
    text: z.string(),
    ids: z.array(z.string()),
  }),
  /** A notice between two steps of a turn. */
  z.object({ type: z.literal('notice'), n: number, text: z.string() }),
  z.object({
    type: z.literal('assistant'),
    n: number,
    at: z.number(),
    text: z.string(),
    calls: z.array(call),
    /** The model that produced `parts`; no other model can use them. */
    by: z.string(),
    parts: z.unknown().optional(),
    finish: z.enum(['stop', 'length']),
  }),
  /** Result of the call at `index` in the last response. */
  z.object({
    type: z.literal('result'),
    n: number,
    index: number,
    text: z.string(),
    isError: z.boolean(),
    handedOut: z.array(z.string()),
  }),
  /** Every command in the text of response `of` was executed and answered. */
  z.object({ type: z.literal('said'), of: number }),
  z.object({ type: z.literal('end'), n: number, how: z.enum(ENDS) }),
])
export type LogRecord = z.output<typeof LogRecord>

export type RecordOf<Type extends LogRecord['type']> = Extract<LogRecord, { type: Type }>

const NEWLINE = 10

export type Journal = Awaited<ReturnType<typeof openJournal>>

/**
 * The conversation on disk: one record per line, append-only. Passes every record in the file to `take`, then opens it for
 * appending. Cuts off a record that a crash left incomplete.
 */
export async function openJournal(
  file: string,
  take: (record: LogRecord) => void,
  onGarbage: (line: number) => void,
) {
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
    /** Resolves once the record is on disk. If it rejects, the record is not in the file, or `isMended` is false. */
    append: (record: LogRecord) => inOrder(record, true),
    /** Like `append`, but a crash may lose the record: for facts that can be found out again. */
    note: (record: LogRecord) => (isClosed ? Promise.resolve() : inOrder(record, false)),
    /** Whether the file holds exactly the appended records. */
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
    const record = LogRecord.safeParse(parseJsonLine(line)).data
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
