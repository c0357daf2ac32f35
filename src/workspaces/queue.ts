/**
 * The message queue of a run, messages/ (S4.16): posting, reading and watching. A watch is in one of these states:
 * - watching: `done` holds the last version of each file. An event makes its file pending, an unnamed event all files.
 * - pending: the files are read at the end of the turn, in the order of their numbers.
 * - retrying: a file is not a message yet. It is read again after each delay in `RETRY_DELAYS_MS`, 1.6 s in all, and then refused.
 * - over the limit: the folder holds more than `MAX_MESSAGES` files. Reported once; each event lists the folder again.
 * - closed.
 */
import { hash } from 'node:crypto'
import { linkSync } from 'node:fs'
import { z } from 'zod'
import { AGENT_NAME } from '../base/agent.ts'
import type { Result } from '../base/result.ts'
import { MESSAGE_TYPES } from '../runs/plan.ts'
import {
  errnoOf,
  failed,
  problem,
  problemOf,
  refuse,
  type WorkspaceProblem,
  type WorkspaceResult,
} from './problem.ts'
import { type Directory, listNames, lookAt, openDirectory, watchFolder } from './safe-fs/directory.ts'
import { readSmall, removeQuietly, temporaryName, writeNew } from './safe-fs/files.ts'

/** C20: the same in every codec. */
const MESSAGE_BYTES = 102_400
/** Limit per queue. */
const MAX_MESSAGES = 10_000

/** The process that created this file reserves the number. */
const RESERVED = '.number.'
const reservationOf = (number: number) => `${RESERVED}${number}`
const TRIES = 1000

/** Returns a number above the given one: the highest in the folder, or one that another process has reserved. */
type NumberSource = (highest: number) => number | Promise<number>

/**
 * Puts a message into the folder of a queue under the next free number (C23). The process that creates the file `.number.N`
 * exclusively owns the number; it writes the message under another name and renames it, so that it appears whole. If the
 * file exists already, because of a running process, a dead one or a hostile agent, the next number is tried without waiting.
 * Messages that were read may be deleted: a caller that must not reuse numbers passes `nextNumber`.
 */
export async function postMessage(
  folder: string,
  message: QueueMessage,
  nextNumber: NumberSource = (highest) => highest + 1,
): Promise<WorkspaceResult<ReceivedMessage>> {
  const text = `${JSON.stringify(message, null, 2)}\n`
  if (Buffer.byteLength(text) > MESSAGE_BYTES) {
    return failed(problem('too_large', 'The message', `is over ${MESSAGE_BYTES} bytes, which is the limit`))
  }
  const parsed = parseMessage(nameOf(message, 1), text)
  if (!parsed.ok) return failed(parsed.error)
  try {
    const directory = openDirectory(folder, { shown: 'messages' })
    const draft = temporaryName('message')
    try {
      writeNew(directory, draft, text, 0o644)
      const file = await publish(directory, draft, message, nextNumber)
      return { ok: true, value: { ...parsed.value, file, number: numberOf(file)! } }
    } finally {
      removeQuietly(directory, draft)
      directory.close()
    }
  } catch (error) {
    return failed(problemOf(error, 'messages'))
  }
}

async function publish(
  directory: Directory,
  draft: string,
  message: QueueMessage,
  nextNumber: NumberSource,
): Promise<string> {
  let highest = 0
  for (let tries = 0; tries < TRIES; tries++) {
    const { messages, reserved } = numbersIn(directory)
    for (const there of messages) highest = Math.max(highest, there)
    while (reserved.has(highest + 1)) highest++
    const number = await nextNumber(highest)
    if (number > HIGHEST_NUMBER)
      refuse('exists', 'messages', `ran out of message numbers (the highest is ${HIGHEST_NUMBER})`)
    highest = number
    const reservation = reservationOf(number)
    if (!tryToMake(() => writeNew(directory, reservation, '', 0o644))) continue
    try {
      // A process writes its message before it releases the number.
      if (numbersIn(directory).messages.has(number)) continue
      const file = nameOf(message, number)
      if (tryToMake(() => linkSync(directory.at(draft), directory.at(file)))) return file
    } finally {
      removeQuietly(directory, reservation)
    }
  }
  return refuse('exists', 'messages', 'could not reserve a message number; try again')
}

function tryToMake(make: () => void): boolean {
  try {
    make()
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw error
  }
}

function numbersIn(directory: Directory): { messages: Set<number>; reserved: Set<number> } {
  const names = listQueue(directory)
  const reservations = names.filter((name) => name.startsWith(RESERVED))
  return {
    messages: new Set(names.flatMap((name) => numberOf(name) ?? [])),
    reserved: new Set(reservations.map((name) => Number(name.slice(RESERVED.length)))),
  }
}

/** The names of messages in the order of their numbers. */
function messageFiles(directory: Directory): string[] {
  return inOrder(listQueue(directory))
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
  // While Orchub posts a message, its file has two names for a moment: treat it like a half-written one.
  if (!read.ok && read.error.code === 'hard_link')
    return { ok: false, error: { ...read.error, code: 'torn' } }
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
export function numberOf(file: string): number | undefined {
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
  readonly what: string
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
      const files = changed === 'all' ? messageFiles(directory) : inOrder([...changed])
      if (changed === 'all') forgetAllBut(new Set(files))
      for (const file of files) if (!tries.has(file) && isNew(file)) take(file)
      isOverLimit = false
    } catch (error) {
      if (!isOverLimit) refused(problemOf(error, folder))
      isOverLimit = true
    }
  }

  function forgetAllBut(files: ReadonlySet<string>) {
    for (const file of done.keys()) if (!files.has(file)) done.delete(file)
  }

  function isNew(file: string): boolean {
    const version = versionOf(directory, file)
    if (version === undefined) done.delete(file)
    return version !== undefined && done.get(file)?.version !== version
  }

  function take(file: string) {
    // Taken before reading: a write in between then counts as another version, which is read again.
    const version = versionOf(directory, file)
    const read = readMessage(directory, file)
    if (read.ok) {
      tries.delete(file)
      if (isOther(file, version, read.value.sha256)) received(read.value)
      return
    }
    // The file was deleted.
    if (read.error.code === 'missing') {
      tries.delete(file)
      done.delete(file)
      return
    }
    const count = tries.get(file) ?? 0
    const wait = retryDelays[count]
    if (wait === undefined) {
      tries.delete(file)
      if (isOther(file, version, read.error.message)) refused(read.error)
      return
    }
    tries.set(file, count + 1)
    const timer = setTimeout(() => {
      timers.delete(timer)
      if (!closed) take(file)
    }, wait)
    timers.add(timer)
  }

  /** A file that was touched or rewritten with the same content is not new. */
  function isOther(file: string, version: string | undefined, what: string): boolean {
    const before = done.get(file)?.what
    done.set(file, { version, what })
    return before !== what
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
