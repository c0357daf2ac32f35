import { mkdirSync } from 'node:fs'
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import { type Clock, sleep, unlessAborted } from '../base/clock.ts'
import { AppError, type ErrorCode } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import type { Log } from '../base/log.ts'
import { findReceipt, replaceReceipt } from '../commands/idempotency.ts'
import { type Mailboxes, post } from '../messages/mailboxes.ts'
import type { Store, Tx } from '../store/store.ts'
import { postMessage, type QueueWatch, type ReceivedMessage, watchQueue } from '../workspaces/queue.ts'
import type { ProblemCode } from '../workspaces/workspaces.ts'
import type { Driver } from './driver.ts'
import type { MESSAGE_TYPES } from './plan.ts'
import { messagesOf } from './run-folder.ts'
import { noted } from './store.ts'

interface RunMessagesOptions {
  store: Store
  clock: Clock
  log: Log
  mailboxes: Mailboxes
  cut: RedactedExcerpt
  /** The member or program that works as this agent now; undefined for agents that use only files. */
  nameOf(driver: Driver, node: string): string | undefined
}

export interface OutgoingRunMessage {
  readonly to: string
  readonly type: (typeof MESSAGE_TYPES)[number]
  readonly content: unknown
}

/** Retry interval while the disk is full or the store is unavailable. */
const RETRY_MS = 1000

/**
 * The message queue of a run, messages/ (S4.16). Records each message of an agent once, by file name and content, and
 * forwards it to recipients that have a mailbox. All others read the file. Messages from people become files as well.
 */
export function createRunMessages({ store, clock, log, mailboxes, cut, nameOf }: RunMessagesOptions) {
  const queues = new Map<string, QueueWatch>()
  /** Serializes messages in the order of their numbers. */
  let taking: Promise<void> = Promise.resolve()
  const ending = new AbortController()

  function take(driver: Driver, message: ReceivedMessage) {
    taking = taking.then(() => keep(driver, message))
  }

  /** Retries until the store accepts the message or the service ends. The next service finds the file again. */
  async function keep(driver: Driver, message: ReceivedMessage): Promise<void> {
    for (;;) {
      try {
        return await store.write((tx) => receive(tx, driver, message))
      } catch (error) {
        log.error({ err: error, run: driver.id }, 'recording a message of a run failed')
        if (!isTransient(error)) return
        await unlessAborted(sleep(clock, RETRY_MS), ending.signal).catch(() => {})
        if (ending.signal.aborted) return
      }
    }
  }

  async function receive(tx: Tx, driver: Driver, message: ReceivedMessage): Promise<void> {
    const { from, to, type, file, number, sha256 } = message
    // `send` records the operator's own messages; an agent may forge one.
    if (from === OPERATOR) return
    // A reader may remove a message, and a new one may then have the same name.
    const key = `${driver.id}/messages/${file}`
    const known = (await findReceipt(tx, ORCHESTRATOR, key))?.digest
    if (known === sha256) return
    replaceReceipt(tx, ORCHESTRATOR, key, { digest: sha256, receipt: file })
    await raiseNumber(tx, driver, number)
    const { agents } = driver.run.graph
    const unknown = [from, to].find((name) => name !== OPERATOR && !agents.has(name))
    if (unknown !== undefined) {
      tx.audit(noted(driver.id, null, `messages/${file} is refused: ${unknown} is not an agent of this run`))
      return
    }
    tx.audit(noted(driver.id, from, `says to ${to} (${type}): ${cut(textOf(message.content), 500)}`))
    await forward(tx, driver, message)
  }

  /** Stores the highest number used so far: numbers stay unique even if their messages are removed (C23). */
  async function raiseNumber(tx: Tx, driver: Driver, number: number): Promise<number> {
    const key = `${driver.id}/messages`
    const highest = Number((await findReceipt(tx, ORCHESTRATOR, key))?.receipt ?? 0)
    // Ignore a forged high number, which would use up all numbers before it.
    if (number <= highest || number > highest + MOST_SKIPPED) return highest
    replaceReceipt(tx, ORCHESTRATOR, key, { digest: 'number', receipt: String(number) })
    return number
  }

  /** Stores the number before a file uses it: after a crash in between, no other message gets it. */
  function nextNumber(driver: Driver, highestThere: number): Promise<number> {
    return store.write(async (tx) => {
      const number = (await raiseNumber(tx, driver, highestThere)) + 1
      await raiseNumber(tx, driver, number)
      return number
    })
  }

  /** Forwards a message to the recipient's mailbox, if it has one, with a line on how to answer. */
  async function forward(
    tx: Tx,
    driver: Driver,
    { from, to, type, content }: OutgoingRunMessage & { from: string },
  ) {
    const mailbox = to === OPERATOR ? OPERATOR : nameOf(driver, to)
    if (mailbox === undefined) return
    const isOfAgent = from !== OPERATOR
    const answer = isOfAgent
      ? `To answer, write ${messagesOf(driver.runFolder)}/${to}_to_${from}_NNN.json.`
      : ''
    await post(tx, mailboxes, {
      to: mailbox,
      title: `${type} from ${from} in ${driver.id}`,
      content: [textOf(content), answer].filter((line) => line !== '').join('\n\n'),
      priority: 'normal',
    })
  }

  return {
    /** Starts watching the queue of a run. */
    follow(driver: Driver) {
      if (!driver.run.graph.plan.messages || queues.has(driver.id)) return
      const folder = messagesOf(driver.runFolder)
      try {
        mkdirSync(folder, { recursive: true })
        const queue = watchQueue({
          folder,
          received: (message) => take(driver, message),
          refused: ({ message }) => driver.note(null, message),
        })
        queues.set(driver.id, queue)
      } catch (error) {
        log.error({ err: error, run: driver.id }, 'watching the message queue of a run failed')
        driver.note(null, 'messages/ cannot be watched, so messages between agents are not forwarded')
      }
    },
    /** Sends a message from a person. Returns the name of its file. */
    async send(driver: Driver, message: OutgoingRunMessage, by: string): Promise<string> {
      const { graph } = driver.run
      if (!graph.plan.messages) {
        throw new AppError('CONFLICT', `Messages are not enabled for ${driver.id}`, {
          hint: 'Set "messages: true" in its plan and resume it.',
        })
      }
      if (!graph.agents.has(message.to)) {
        throw new AppError('NOT_FOUND', `${driver.id} has no agent ${message.to.slice(0, 100)}`, {
          hint: `orc run show ${driver.id} lists them.`,
        })
      }
      const timestamp = new Date(clock.now()).toISOString()
      const posted = await postMessage(
        messagesOf(driver.runFolder),
        { from: OPERATOR, timestamp, ...message },
        (highest) => nextNumber(driver, highest),
      )
      if (!posted.ok) {
        const { code, message } = posted.error[0]!
        const hint =
          code === 'too_large'
            ? 'Put large content into a file, and send its path.'
            : `The file could not be written to ${messagesOf(driver.runFolder)}.`
        throw new AppError(REFUSALS[code] ?? 'INVALID_REQUEST', message, { hint })
      }
      await store.write(async (tx) => {
        const text = `${by} says to ${message.to} (${message.type}): ${cut(textOf(message.content), 500)}`
        tx.audit(noted(driver.id, message.to, text))
        await forward(tx, driver, { from: OPERATOR, ...message })
      })
      return posted.value
    },
    /** Takes the last messages of a run that has ended, and stops watching. */
    end(run: string) {
      queues.get(run)?.look()
      queues.get(run)?.close()
      queues.delete(run)
    },
    async close() {
      ending.abort()
      for (const run of [...queues.keys()]) {
        queues.get(run)!.close()
        queues.delete(run)
      }
      await taking
    },
  }
}

export type RunMessages = ReturnType<typeof createRunMessages>

const REFUSALS: Partial<Record<ProblemCode, ErrorCode>> = {
  too_large: 'TOO_LARGE',
  disk_full: 'STORE_FULL',
  read_only: 'CONFLICT',
}

/** Largest accepted gap between two numbers. */
const MOST_SKIPPED = 10_000

/** True for errors that a retry may not meet again. */
function isTransient(error: unknown): boolean {
  return error instanceof AppError && (error.code === 'STORE_FULL' || error.code === 'STORE_UNAVAILABLE')
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : (JSON.stringify(content, null, 2) ?? '')
}
