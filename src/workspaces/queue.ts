/**
 * The message queue of a run, messages/ (S4.16): posting, reading and watching. A watch is in one of these states:
 * - watching: `done` holds the last version of each file. An event makes its file pending, an unnamed event all files.
 * - pending: the files are read at the end of the turn, in the order of their numbers.
 * - retrying: a file is not a message yet. It is read again after each delay in `RETRY_DELAYS_MS`, 1.6 s in all, and then refused.
 * - over the limit: the folder holds more than `MAX_MESSAGES` files. Reported once; each event lists the folder again.
 * - closed.
 */
import { hash } from 'node:crypto'
import { z } from 'zod'
import { AGENT_NAME } from '../base/agent.ts'
import type { Result } from '../base/result.ts'
import { MESSAGE_TYPES } from '../runs/plan.ts'
import {
  attempt,
  failed,
  problem,
  problemOf,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import { type Directory, listNames, lookAt, openDirectory, watchFolder } from './safe-fs/directory.ts'
import { readSmall, replaceFile } from './safe-fs/files.ts'

/** C20: the same in every codec. */
const MESSAGE_BYTES = 102_400
/** Limit per queue. */
const MAX_MESSAGES = 10_000

/** Attempts to find a number that no agent takes at the same moment. */
const TRIES = 1000

/**
 * Puts a message into the folder of a queue (C23), and returns the name of its file. `reserveNumber` gets the highest number in
 * the folder and returns one that it never returns again: messages that were read may be deleted, so the folder alone does not
 * say which numbers were used. The message is written under another name and renamed, so that it appears whole.
 */
export async function postMessage(
  folder: string,
  message: QueueMessage,
  reserveNumber: (highest: number) => Promise<number>,
): Promise<WorkspaceResult<string>> {
  const text = `${JSON.stringify(message, null, 2)}\n`
  if (Buffer.byteLength(text) > MESSAGE_BYTES) {
    return failed(problem('too_large', 'The message', `is over ${MESSAGE_BYTES} bytes, which is the limit`))
  }
  const parsed = parseMessage(nameOf(message, 1), text)
  if (!parsed.ok) return failed(parsed.error)
  return await attempt('messages', async () => {
    using directory = openDirectory(folder, { shown: 'messages' })
    const file = nameOf(message, await findNumber(directory, reserveNumber))
    replaceFile(directory, file, text, 0o644)
    return file
  })
}

/**
 * Agents number their messages without reserving, so one of them may just have used the number. A file that an agent puts
 * under the service's own name after this check is replaced.
 */
async function findNumber(
  directory: Directory,
  reserveNumber: (highest: number) => Promise<number>,
): Promise<number> {
  for (let tries = 0; tries < TRIES; tries++) {
    const number = await reserveNumber(Math.max(0, ...numbersIn(directory)))
    if (number > HIGHEST_NUMBER)
      refuse('exists', 'messages', `ran out of message numbers (the highest is ${HIGHEST_NUMBER})`)
    if (!numbersIn(directory).includes(number)) return number
  }
  return refuse('exists', 'messages', 'has no free message number; try again')
}

function numbersIn(directory: Directory): number[] {
  return listQueue(directory).flatMap((name) => numberOf(name) ?? [])
}

/** The names of messages, sorted by number. */
function inOrder(names: readonly string[]): string[] {
  return names
    .map((name) => ({ name, number: numberOf(name) ?? -1 }))
    .filter(({ number }) => number >= 0)
    .sort((one, other) => one.number - other.number || (one.name < other.name ? -1 : 1))
    .map(({ name }) => name)
}

function listQueue(directory: Directory): string[] {
  const names = listNames(directory, MAX_MESSAGES + 1)
  if (names.length > MAX_MESSAGES) {
    refuse('too_many_files', directory.shown, `holds more than ${MAX_MESSAGES} files, which is the limit`)
  }
  return names.map(String)
}

function readMessage(directory: Directory, file: string): ParsedMessage {
  const read = readSmall(directory, file, MESSAGE_BYTES)
  return read.ok ? parseMessage(file, read.value.toString()) : read
}

/** S4.16. */
const QueueMessage = z.object({
  from: z.string().regex(AGENT_NAME),
  to: z.string().regex(AGENT_NAME),
  timestamp: z.string(),
  type: z.enum(MESSAGE_TYPES),
  content: z.unknown(),
})
type QueueMessage = z.output<typeof QueueMessage>

export interface ReceivedMessage extends QueueMessage {
  /** The file name identifies the message, so that it acts once (C25). */
  readonly file: string
  readonly number: number
  /** Hash of the text: after a message is deleted, another one may reuse its name. */
  readonly sha256: string
}

const NAME = /^(.+)_to_(.+)_(\d{3,9})\.json$/
/** File names have room for nine digits. */
const HIGHEST_NUMBER = 999_999_999

/** The number in the name of a message's file. */
function numberOf(file: string): number | undefined {
  const match = NAME.exec(file)
  return match === null ? undefined : Number(match[3])
}

function nameOf({ from, to }: Pick<QueueMessage, 'from' | 'to'>, number: number): string {
  return `${from}_to_${to}_${String(number).padStart(3, '0')}.json`
}

type ParsedMessage = Result<ReceivedMessage, WorkspaceProblem>

function parseMessage(file: string, content: string): ParsedMessage {
  const refused = (code: 'torn' | 'invalid', why: string): ParsedMessage => ({
    ok: false,
    error: problem(code, `messages/${file}`, why),
  })
  // A line end that is appended later does not make a new message.
  const text = content.replace(/^\ufeff/, '').trim()
  let raw: unknown
  try {
    raw = JSON.parse(text)
  } catch {
    return refused('torn', 'is not complete JSON')
  }
  const parsed = QueueMessage.safeParse(raw)
  if (!parsed.success) {
    const { path, message } = parsed.error.issues[0]!
    return refused('invalid', `is not a message: ${path.join('.') || 'it'}: ${message}`)
  }
  const number = numberOf(file)
  // An agent's name may contain `_to_`, so compare with the expected file name instead of splitting.
  const digits = NAME.exec(file)?.[3]
  if (number === undefined || file !== `${parsed.data.from}_to_${parsed.data.to}_${digits}.json`) {
    return refused('invalid', 'has a sender or recipient that differs from its file name')
  }
  return { ok: true, value: { ...parsed.data, file, number, sha256: hash('sha256', text) } }
}

interface QueueWatchOptions {
  readonly folder: string
  /** Called once for each message that this watch has seen; a caller that restarts dedupes by name and `sha256`. */
  received(message: ReceivedMessage): void
  /** A file that is still not a message after all retries, or a problem with the folder itself. */
  refused(problem: WorkspaceProblem): void
  /** Delays before retries, in ms. */
  readonly retryDelays?: readonly number[]
}

export interface QueueWatch {
  look(): void
  close(): void
}

interface SeenFile {
  readonly version: string | undefined
  /** The hash of the message, or why the file is not a message. */
  readonly content: string
}

const RETRY_DELAYS_MS = [20, 50, 100, 200, 400, 800]

/** Follows the folder of a queue by file events. Messages that are present arrive in the order of their numbers. */
export function watchQueue({
  folder,
  received,
  refused,
  retryDelays = RETRY_DELAYS_MS,
}: QueueWatchOptions): QueueWatch {
  /** The last content under each name: after a message is deleted, another one may reuse its name. */
  const done = new Map<string, SeenFile>()
  const tries = new Map<string, number>()
  const timers = new Set<NodeJS.Timeout>()
  let closed = false
  let isOverLimit = false
  /** Names with a pending event: reading the whole folder for each message would be quadratic. */
  let named: Set<string> | 'all' = 'all'
  const watched = watchFolder({
    folder,
    shown: 'messages',
    onEvent(name) {
      if (name !== null && numberOf(name) === undefined) return
      if (name === null) named = 'all'
      else if (named !== 'all') named.add(name)
      if (!closed) lookSoon ??= setImmediate(readChanged)
    },
    onLost: (why) => refused(problem('missing', folder, why)),
  })
  const { directory } = watched
  let lookSoon: NodeJS.Immediate | undefined = setImmediate(readChanged)

  function look() {
    named = 'all'
    readChanged()
  }

  function readChanged() {
    clearImmediate(lookSoon)
    lookSoon = undefined
    if (closed) return
    const isFull = isOverLimit || done.size >= MAX_MESSAGES
    const changed = isFull ? 'all' : named
    named = new Set()
    try {
      const files = inOrder(changed === 'all' ? listQueue(directory) : [...changed])
      if (changed === 'all') forgetAllBut(new Set(files))
      for (const file of files) if (!tries.has(file)) take(file)
      isOverLimit = false
    } catch (error) {
      if (!isOverLimit) refused(problemOf(error, folder))
      isOverLimit = true
    }
  }

  function forgetAllBut(files: ReadonlySet<string>) {
    for (const file of done.keys()) if (!files.has(file)) done.delete(file)
  }

  function take(file: string) {
    // Taken before reading: a write in between then counts as another version, which is read again.
    const version = versionOf(directory, file)
    const before = done.get(file)
    if (version !== undefined && version === before?.version) return
    const read = readMessage(directory, file)
    if (!read.ok && read.error.code === 'missing') {
      tries.delete(file)
      done.delete(file)
      return
    }
    const count = tries.get(file) ?? 0
    const wait = read.ok ? undefined : retryDelays[count]
    if (wait !== undefined) {
      tries.set(file, count + 1)
      const timer = setTimeout(() => {
        timers.delete(timer)
        if (!closed) take(file)
      }, wait)
      timers.add(timer)
      return
    }
    tries.delete(file)
    const content = read.ok ? read.value.sha256 : read.error.message
    done.set(file, { version, content })
    // A file that was touched or rewritten with the same content is not new.
    if (content === before?.content) return
    if (read.ok) received(read.value)
    else refused(read.error)
  }

  return {
    look,
    close() {
      if (closed) return
      closed = true
      clearImmediate(lookSoon)
      for (const timer of timers) clearTimeout(timer)
      watched.close()
    },
  }
}

/** Undefined: the file does not exist. */
function versionOf(directory: Directory, file: string): string | undefined {
  try {
    const found = lookAt(directory, file)
    return found === undefined ? undefined : `${found.ino}:${found.ctimeNs}`
  } catch {
    // No access to the folder: reading the file reports the reason.
    return ''
  }
}
