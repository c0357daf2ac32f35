import { mkdirSync } from 'node:fs'
import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { AppError, type ErrorCode } from '../base/errors.ts'
import type { RedactedExcerpt } from '../base/excerpt.ts'
import type { Log } from '../base/log.ts'
import { findReceipt, replaceReceipt } from '../commands/store/idempotency.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import { post } from '../messages/post.ts'
import type { Store, Tx } from '../store/store.ts'
import { postMessage, type QueueWatch, type ReceivedMessage, watchQueue } from '../workspaces/queue.ts'
import type { ProblemCode } from '../workspaces/workspaces.ts'
import { noted } from './audit-entries.ts'
import type { Driver } from './driver.ts'
import type { MESSAGE_TYPES } from './plan.ts'
import { messagesOf } from './run-folder.ts'

export interface RunMailOptions {
  store: Store
  clock: Clock
  log: Log
  mailboxes: Mailboxes
  cut: RedactedExcerpt
  /** The member or program that works as this agent right now; undefined for those who only know files. */
  nameOf(driver: Driver, node: string): string | undefined
}

export interface Letter {
  readonly to: string
  readonly type: (typeof MESSAGE_TYPES)[number]
  readonly content: unknown
}

/** While the disk is full or the store away. */
const AGAIN_MS = 1000

/**
 * The queue of a run, messages/ (S4.16). What agents put there is recorded once, by its file's name and content, and given to those
 * who have a mailbox; who only knows files finds it there. What people say to an agent of the run becomes such a file.
 */
export function createRunMail({ store, clock, log, mailboxes, cut, nameOf }: RunMailOptions) {
  const queues = new Map<string, QueueWatch>()
  /** One after the other, in the order of their numbers. */
  let taking: Promise<void> = Promise.resolve()
  const ending = new AbortController()

  function take(driver: Driver, message: ReceivedMessage) {
    taking = taking.then(() => keep(driver, message))
  }

  /** Until the store takes it, or the service ends; the next one finds the file again. */
  async function keep(driver: Driver, message: ReceivedMessage): Promise<void> {
    for (;;) {
      try {
        return await store.write((tx) => receive(tx, driver, message))
      } catch (error) {
        log.error({ err: error, run: driver.id }, 'a message of a run was not taken')
        if (!isOfStore(error) || ending.signal.aborted) return
        await new Promise<void>((resolve) => {
          const cancel = clock.after(AGAIN_MS, resolve)
          ending.signal.addEventListener(
            'abort',
            () => {
              cancel()
              resolve()
            },
            { once: true },
          )
        })
        if (ending.signal.aborted) return
      }
    }
  }

  async function receive(tx: Tx, driver: Driver, message: ReceivedMessage): Promise<void> {
    const { from, to, type, file, number, sha256 } = message
    // Ours are told of when they are sent; whoever else writes in our name is not believed.
    if (from === OPERATOR) return
    // Whoever read a message may remove it, and then another one may come under its name.
    const key = `${driver.id}/messages/${file}`
    const known = (await findReceipt(tx, ORCHESTRATOR, key))?.digest
    if (known === sha256 || known === WITHOUT_DIGEST) return
    replaceReceipt(tx, ORCHESTRATOR, key, { digest: sha256, receipt: file })
    await raiseNumber(tx, driver, number)
    const { agents } = driver.run.graph
    const stranger = [from, to].find((name) => name !== OPERATOR && !agents.has(name))
    if (stranger !== undefined) {
      tx.audit(noted(driver.id, null, `messages/${file} is refused: ${stranger} is not an agent of this run`))
      return
    }
    tx.audit(noted(driver.id, from, `says to ${to} (${type}): ${cut(textOf(message.content), 500)}`))
    await give(tx, driver, message)
  }

  /** The highest number that was ever given or seen: messages may be removed, and theirs are not given again (C23). */
  async function raiseNumber(tx: Tx, driver: Driver, number: number): Promise<number> {
    const key = `${driver.id}/messages`
    const highest = Number((await findReceipt(tx, ORCHESTRATOR, key))?.receipt ?? 0)
    // Whoever takes one of the last there are does not use up all before it.
    if (number <= highest || number > highest + MOST_SKIPPED) return highest
    replaceReceipt(tx, ORCHESTRATOR, key, { digest: 'number', receipt: String(number) })
    return number
  }

  /** Kept before a file has it: not even a crash in between gives it twice. */
  function nextNumber(driver: Driver, highestThere: number): Promise<number> {
    return store.write(async (tx) => {
      const number = (await raiseNumber(tx, driver, highestThere)) + 1
      await raiseNumber(tx, driver, number)
      return number
    })
  }

  /** To the mailbox of the one that has it, with how to answer. */
  async function give(tx: Tx, driver: Driver, { from, to, type, content }: Letter & { from: string }) {
    const mailbox = to === OPERATOR ? OPERATOR : nameOf(driver, to)
    if (mailbox === undefined) return
    const isOfAgent = from !== OPERATOR
    const answer = isOfAgent ? `To answer, write ${messagesOf(driver.place)}/${to}_to_${from}_NNN.json.` : ''
    await post(tx, mailboxes, {
      to: mailbox,
      title: `${type} from ${from} in ${driver.id}`,
      content: [textOf(content), answer].filter((line) => line !== '').join('\n\n'),
      priority: 'normal',
    })
  }

  return {
    /** From the begin of a run, and again after a restart. */
    follow(driver: Driver) {
      if (!driver.run.graph.plan.messages || queues.has(driver.id)) return
      const folder = messagesOf(driver.place)
      try {
        mkdirSync(folder, { recursive: true })
        const queue = watchQueue({
          folder,
          received: (message) => take(driver, message),
          refused: ({ message }) => driver.note(null, message),
        })
        queues.set(driver.id, queue)
      } catch (error) {
        log.error({ err: error, run: driver.id }, 'the messages of a run cannot be followed')
        driver.note(null, 'messages/ cannot be followed')
      }
    },
    /** A person, to an agent of the run. Gives the name of its file. */
    async send(driver: Driver, letter: Letter, by: string): Promise<string> {
      const { graph } = driver.run
      if (!graph.plan.messages) {
        throw new AppError('CONFLICT', `${driver.id} has no messages`, {
          hint: 'Say "messages: true" in its plan, and take it up again.',
        })
      }
      if (!graph.agents.has(letter.to)) {
        throw new AppError('NOT_FOUND', `${driver.id} has no agent ${letter.to.slice(0, 100)}`, {
          hint: `orc run show ${driver.id} lists them.`,
        })
      }
      const timestamp = new Date(clock.now()).toISOString()
      const posted = await postMessage(
        messagesOf(driver.place),
        { from: OPERATOR, timestamp, ...letter },
        (highest) => nextNumber(driver, highest),
      )
      if (!posted.ok) {
        const { code, message } = posted.error[0]!
        const hint =
          code === 'too_large'
            ? 'Put large content into a file, and say where it is.'
            : 'The file could not be put into messages/.'
        throw new AppError(REFUSALS[code] ?? 'INVALID_REQUEST', message, { hint })
      }
      const { file } = posted.value
      await store.write(async (tx) => {
        const text = `${by} says to ${letter.to} (${letter.type}): ${cut(textOf(letter.content), 500)}`
        tx.audit(noted(driver.id, letter.to, text))
        await give(tx, driver, { from: OPERATOR, ...letter })
      })
      return file
    },
    /** The run has ended: what is there by now is still taken. */
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

const REFUSALS: Partial<Record<ProblemCode, ErrorCode>> = {
  too_large: 'TOO_LARGE',
  disk_full: 'STORE_FULL',
  read_only: 'CONFLICT',
}

/** Of numbers. */
const MOST_SKIPPED = 10_000

/** As earlier versions noted what was told. */
const WITHOUT_DIGEST = 'run'

export type RunMail = ReturnType<typeof createRunMail>

/** Another try may find it well again. */
function isOfStore(error: unknown): boolean {
  return error instanceof AppError && (error.code === 'STORE_FULL' || error.code === 'STORE_UNAVAILABLE')
}

function textOf(content: unknown): string {
  return typeof content === 'string' ? content : (JSON.stringify(content, null, 2) ?? '')
}
