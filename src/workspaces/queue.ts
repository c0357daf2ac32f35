import { linkSync, unlinkSync } from 'node:fs'
import {
  HIGHEST_NUMBER,
  nameOf,
  numberOf,
  type ParsedMessage,
  parseMessage,
  type QueueMessage,
  type ReceivedMessage,
} from './message-file.ts'
import { errnoOf, failed, type Outcome, problem, problemOf, refuse } from './problem.ts'
import { type Directory, openDirectory } from './safe-fs/directory.ts'
import { listNames } from './safe-fs/listing.ts'
import { readSmall } from './safe-fs/small-file.ts'
import { temporaryName, writeNew } from './safe-fs/writing.ts'

/** C20: the same in every codec. */
export const MESSAGE_BYTES = 102_400
/** Looked at in one queue. */
export const MOST_MESSAGES = 10_000

/** The process that created this file reserves the number. */
const RESERVED = '.number.'
const reservationOf = (number: number) => `${RESERVED}${number}`
const TRIES = 1000

/** Gives a number above the one that it is told: the highest in the folder, or one that others are about to give. */
export type NumberSource = (highest: number) => number | Promise<number>

/**
 * Puts a message into the folder of a queue under the next free number (C23). Who may give that away has made a file that
 * only one can make; the message is written under another name and appears whole. Nobody waits for anybody: what is in the
 * place of that file, of one that is at it, one that died or an agent that means no good, takes no more than this number.
 * Read messages may be removed: who must not give a number twice remembers it, and says which is next.
 */
export async function postMessage(
  folder: string,
  message: QueueMessage,
  nextNumber: NumberSource = (highest) => highest + 1,
): Promise<Outcome<ReceivedMessage>> {
  const text = `${JSON.stringify(message, null, 2)}\n`
  if (Buffer.byteLength(text) > MESSAGE_BYTES) {
    return failed(problem('too_large', 'The message', `is over ${MESSAGE_BYTES} bytes, which is the limit`))
  }
  const parsed = parseMessage(nameOf(message, 1), text)
  if (!parsed.ok) return failed(parsed.problem)
  try {
    const directory = openDirectory(folder, { shown: 'messages' })
    const draft = temporaryName('message')
    try {
      writeNew(directory, draft, text, 0o644)
      const file = await publish(directory, draft, message, nextNumber)
      return { ok: true, value: { ...parsed.message, file, number: numberOf(file)! } }
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
    if (number > HIGHEST_NUMBER) refuse('exists', 'messages', `has no number left after ${HIGHEST_NUMBER}`)
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
  return refuse('exists', 'messages', 'is so busy that no number could be had')
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

/** Whatever an agent has put in its place since: the message is there, or why it is not is said already. */
function removeQuietly(directory: Directory, name: string): void {
  try {
    unlinkSync(directory.at(name))
  } catch {
    // A file that stays does no harm.
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
export function messageFiles(directory: Directory): string[] {
  return inOrder(listQueue(directory))
}

/** The names of messages, sorted by number. */
export function inOrder(names: readonly string[]): string[] {
  return names
    .map((name) => ({ name, number: numberOf(name) ?? -1 }))
    .filter(({ number }) => number >= 0)
    .sort((one, other) => one.number - other.number || (one.name < other.name ? -1 : 1))
    .map(({ name }) => name)
}

function listQueue(directory: Directory): string[] {
  const names = listNames(directory, MOST_MESSAGES + 1)
  if (names.length > MOST_MESSAGES) {
    refuse('too_many_files', directory.shown, `holds more than ${MOST_MESSAGES} files, which is the limit`)
  }
  return names.map(String)
}

export function readMessage(directory: Directory, file: string): ParsedMessage {
  const read = readSmall(directory, file, MESSAGE_BYTES)
  // Between its link and the removal of its first name a message of ours has two names: as torn as half a file.
  if (!read.ok && read.problem.code === 'hard_link')
    return { ok: false, problem: { ...read.problem, code: 'torn' } }
  return read.ok ? parseMessage(file, read.value.toString()) : read
}

/** All messages of a queue in order, and the files that are not messages. */
export function readMessages(folder: string): Outcome<readonly ParsedMessage[]> {
  try {
    const directory = openDirectory(folder, { shown: 'messages' })
    try {
      return { ok: true, value: messageFiles(directory).map((file) => readMessage(directory, file)) }
    } finally {
      directory.close()
    }
  } catch (error) {
    return failed(problemOf(error, 'messages'))
  }
}
