import type { AnswerOf, MailAnswer, QueryOf, ReceiptAnswer } from '../api/contract.ts'
import { backoff, reconnecting, wait } from './backoff.ts'

export interface ReceiveOptions {
  /** The agent whose mail the operator reads; an agent gets its own. */
  agent?: string
  signal?: AbortSignal
  /** Called when a handler fails; its message is not acknowledged and comes again. Without it, receiving ends. */
  onError?: (error: unknown, message: MailAnswer) => void
}

interface Mailbox {
  next(query: QueryOf<'nextDeliveries'>, signal?: AbortSignal): Promise<AnswerOf<'nextDeliveries'>>
  acknowledge(ids: readonly string[], agent?: string): Promise<ReceiptAnswer>
}

const WAIT_SECONDS = 25
/** Remembers this many handled messages, so that one whose acknowledgement was lost isn't handled again. */
const REMEMBERED = 1000

/** Handles messages in order, at least once each, and acknowledges them while the next ones are handled. */
export async function receiveMail(
  mailbox: Mailbox,
  { agent, signal, onError }: ReceiveOptions,
  handler: (message: MailAnswer) => Promise<void> | void,
): Promise<void> {
  const query = { wait: WAIT_SECONDS, ...(agent === undefined ? {} : { agent }) }
  const done = new Set<string>()
  const acknowledger = createAcknowledger(mailbox, agent)

  const batches = reconnecting(async function* (alive) {
    const { messages } = await mailbox.next(query, signal)
    alive()
    yield messages
    // Ask again at once: the service waits for messages.
    while (signal?.aborted !== true) yield (await mailbox.next(query, signal)).messages
  }, signal)

  async function take(message: MailAnswer): Promise<void> {
    if (!done.has(message.id)) {
      try {
        await handler(message)
      } catch (error) {
        if (onError === undefined) throw error
        onError(error, message)
        return
      }
      remember(done, message.id)
    }
    acknowledger.add(message.id)
  }

  try {
    for await (const messages of batches) {
      for (const message of messages) if (signal?.aborted !== true) await take(message)
    }
  } finally {
    await acknowledger.settled()
  }
}

function remember(done: Set<string>, id: string) {
  done.add(id)
  // A set keeps insertion order: the first is the oldest.
  if (done.size > REMEMBERED) done.delete(done.values().next().value!)
}

/** Sends one acknowledgement at a time; ids that come in between share the next one. */
function createAcknowledger(mailbox: Mailbox, agent: string | undefined) {
  let waiting: string[] = []
  let sending: Promise<void> | undefined

  async function sendAll() {
    for (let failures = 0; waiting.length > 0; ) {
      const ids = waiting.splice(0, REMEMBERED)
      const receipt = await mailbox.acknowledge(ids, agent).catch(() => undefined)
      if (receipt === undefined || (receipt.status === 'error' && receipt.code === 'RATE_LIMITED')) {
        waiting = [...ids, ...waiting]
        await wait(receipt?.retry_after_ms ?? backoff(failures++))
        // Too late: the messages come again and are acknowledged then.
        if (failures > MAX_FAILURES) waiting = []
      }
    }
    sending = undefined
  }

  return {
    add(id: string) {
      waiting.push(id)
      sending ??= sendAll()
    },
    settled: () => sending ?? Promise.resolve(),
  }
}

const MAX_FAILURES = 5
