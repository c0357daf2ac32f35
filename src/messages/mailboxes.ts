import { OPERATOR, ORCHESTRATOR } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { Store, Tx } from '../store/store.ts'
import { setTimer, type Timers } from '../store/timers.ts'
import type { Conversations } from './conversations.ts'
import {
  claimDeliveries,
  countQueued,
  knownDeliveries,
  markReadByPeople,
  moveDeliveries,
  releaseExpired,
} from './delivery-states.ts'
import type { DeliveryState, Priority } from './message.ts'
import { insertMessage, type Mail, type NewMessage } from './messages.ts'

/** A receiver must acknowledge a message within this time (C8). */
export const ACKNOWLEDGE_MS = 30_000
/** Waiting messages are counted up to this number. */
const COUNTED = 1000
/** Limits of one hand-out; the rest follows with the next one. */
const HAND_OUT = { messages: 500, bytes: 4_000_000 }

/** Hands messages out, and moves their deliveries from state to state, each with its evidence (C27). */
export interface Mailboxes {
  /** Marks the messages as `written`. Those that aren't acknowledged in time are queued again. */
  handOut(tx: Tx, agent: string, evidence: string, options?: HandOutOptions): Promise<HandedOut>
  /** Waits for messages; returns an empty list after `waitMs`. */
  waitForMail(
    agent: string,
    options: { waitMs: number; evidence: string; signal: AbortSignal },
  ): Promise<Mail[]>
  acknowledge(tx: Tx, agent: string, ids: readonly string[], evidence: string): Promise<Acknowledged>
  /** Records how far messages came, and returns the keys of those that moved. A delivery never moves backwards. */
  moved(
    tx: Tx,
    agent: string,
    keys: readonly number[],
    state: DeliveryState,
    evidence: string,
    takenBack?: boolean,
  ): Promise<readonly number[]>
  /** Stores and audits a message. Hands it out to an idle agent at once, or announces it after the commit. */
  send(tx: Tx, message: NewMessage, entry: SendEntry): Promise<string>
  /** Connects a running agent to its mailbox. Returns a function that disconnects it. */
  attach(agent: string, receiver: MailReceiver): () => void
  /** Registers a listener that runs in the transaction that moves deliveries. */
  onMoved(listener: OnMoved): void
  /** While an agent is paused, its receivers keep waiting (S1.24). */
  setHeld(agent: string, held: boolean): void
  /** A halt is over: receivers that wait look again. */
  endHalt(): void
}

/** The audit entry of a new message. */
interface SendEntry {
  /** Redacted. */
  text: string
  data?: Readonly<Record<string, unknown>>
}

/** A running agent: `delivery/agent-delivery.ts`. */
export interface MailReceiver {
  /**
   * The claim of an idle agent; undefined if it isn't ready. Lets the transaction that stores a message hand it out as
   * well, which saves a commit. Must not change anything: the transaction may be rolled back and run again.
   */
  readyFor(): TurnClaim | undefined
  /** Messages that were handed out for `readyFor`, after the commit. */
  take(handedOut: HandedOut): void
  /** A message waits in the mailbox. Priority and sender are those of the newest one. */
  onMail(priority: Priority, from: string): void
}

export type TurnClaim = HandOutOptions & { evidence: string }

/** `keys`: the deliveries that moved. */
type OnMoved = (
  tx: Tx,
  agent: string,
  keys: readonly number[],
  state: DeliveryState,
  evidence: string,
) => Promise<void>

interface HandOutOptions {
  limit?: number
  /** Hand out only if one of the messages may begin a turn. */
  mustWake?: boolean
  byPriority?: boolean
  /** For runtimes: an unconfirmed message is looked up by its id, and not queued again by a timer. */
  untilFound?: boolean
  maxBytes?: number
}

export interface HandedOut {
  messages: Mail[]
  remaining: number
}

interface Acknowledged {
  acknowledged: string[]
  /** Acknowledged before, which is normal for messages that were delivered twice. */
  already_read: string[]
  /** Ids that belong to no message to this agent. */
  unknown: string[]
}

export function createMailboxes(
  store: Store,
  timers: Timers,
  conversations: Conversations,
  clock: Clock,
  /** During a halt, nothing is handed out. */
  isHalted = () => false,
): Mailboxes {
  const waiters = new Map<string, Set<() => void>>()
  const receivers = new Map<string, MailReceiver>()
  const heldBack = new Set<string>()
  let seeMoved: OnMoved = async () => {}

  async function handOut(
    tx: Tx,
    agent: string,
    evidence: string,
    options: HandOutOptions = {},
  ): Promise<HandedOut> {
    if (isHalted()) return { messages: [], remaining: 0 }
    const until = options.untilFound === true ? null : tx.now + ACKNOWLEDGE_MS
    const messages = await claimDeliveries(tx, {
      agent,
      until,
      evidence,
      limit: options.limit ?? HAND_OUT.messages,
      maxBytes: options.maxBytes ?? HAND_OUT.bytes,
      byPriority: options.byPriority ?? false,
      mustWake: options.mustWake ?? false,
    })
    if (messages.length === 0) return { messages, remaining: 0 }
    if (until !== null) setTimer(tx, 'redeliver', agent, until)
    const last = messages.at(-1)!
    tx.afterCommit(() => {
      if (until !== null) timers.setFor(until)
      conversations.handedOut(agent, causeFrom(last), clock.now())
    })
    const remaining = await countQueued(tx, agent, COUNTED)
    return { messages, remaining }
  }

  async function moved(
    tx: Tx,
    agent: string,
    keys: readonly number[],
    state: DeliveryState,
    evidence: string,
    takenBack = false,
  ) {
    const done = await moveDeliveries(tx, agent, keys, state, evidence, { takenBack, handedOut: true })
    if (done.length > 0) await seeMoved(tx, agent, done, state, evidence)
    return done
  }

  timers.on('redeliver', async (tx, agent) => {
    const { released, nextDue } = await releaseExpired(tx, agent)
    if (nextDue !== undefined) setTimer(tx, 'redeliver', agent, nextDue)
    tx.afterCommit(() => {
      if (nextDue !== undefined) timers.setFor(nextDue)
      if (released.length > 0) announce(agent, 'normal', ORCHESTRATOR)
    })
  })

  async function offer(tx: Tx, agent: string, priority: Priority, from: string) {
    // Receivers that wait at the API came first.
    const receiver = waiters.has(agent) ? undefined : receivers.get(agent)
    const claim = receiver?.readyFor()
    if (receiver !== undefined && claim !== undefined) {
      const handedOut = await handOut(tx, agent, claim.evidence, claim)
      if (handedOut.messages.length > 0) {
        tx.afterCommit(() => receiver.take(handedOut))
        return
      }
    }
    tx.afterCommit(() => announce(agent, priority, from))
  }

  function announce(agent: string, priority: Priority, from: string) {
    const waiting = waiters.get(agent)
    if (waiting !== undefined) {
      waiters.delete(agent)
      for (const wake of waiting) wake()
    }
    receivers.get(agent)?.onMail(priority, from)
  }

  /** Requeues messages when a halt came between the commit and the receiver. */
  async function putBack(agent: string, messages: readonly Mail[]) {
    const keys = messages.map(({ id }) => parseId('msg', id)!)
    await store.write((tx) => moved(tx, agent, keys, 'queued', 'not delivered: everything was stopped'))
  }

  /** Resolves at the next mail, after `waitMs`, or when the caller is gone. */
  function nextMail(
    agent: string,
    waitMs: number,
    signal: AbortSignal,
  ): { arrived: Promise<void>; forget(): void } {
    const { promise, resolve } = Promise.withResolvers<void>()
    const waiting = waiters.get(agent) ?? new Set()
    waiters.set(agent, waiting.add(resolve))
    const cancel = clock.after(waitMs, resolve)
    const gone = () => resolve()
    signal.addEventListener('abort', gone, { once: true })
    return {
      arrived: promise,
      forget() {
        cancel()
        signal.removeEventListener('abort', gone)
        waiting.delete(resolve)
        if (waiting.size === 0 && waiters.get(agent) === waiting) waiters.delete(agent)
      },
    }
  }

  return {
    handOut,
    moved,
    async send(tx, message, { text, data }) {
      const { from, to, priority } = message
      const { key, digest } = await insertMessage(tx, message)
      const id = formatId('msg', key)
      tx.audit({
        type: 'message.accepted',
        class: 'internal',
        actor: from,
        subject: to,
        text,
        data: { message_id: id, priority, ...data, digest },
      })
      if (to === OPERATOR) markReadByPeople(tx, to, key)
      else if (message.task?.quiet !== true) await offer(tx, to, priority, from)
      return id
    },
    attach(agent, receiver) {
      receivers.set(agent, receiver)
      return () => {
        if (receivers.get(agent) === receiver) receivers.delete(agent)
      }
    },
    onMoved(listener) {
      seeMoved = listener
    },
    setHeld(agent, held) {
      if (held) heldBack.add(agent)
      else if (heldBack.delete(agent)) announce(agent, 'normal', ORCHESTRATOR)
    },
    endHalt() {
      const waiting = [...waiters.values()]
      waiters.clear()
      for (const wakes of waiting) for (const wake of wakes) wake()
    },
    async waitForMail(agent, { waitMs, evidence, signal }) {
      const deadline = clock.now() + waitMs
      while (!signal.aborted) {
        // Listen first, or a message that arrives during the query would be missed.
        const next = nextMail(agent, Math.max(0, deadline - clock.now()), signal)
        try {
          if (!isHalted() && !heldBack.has(agent) && (await countQueued(store, agent, 1)) > 0) {
            const { messages } = await store.write((tx) => handOut(tx, agent, evidence))
            if (messages.length > 0 && !isHalted()) return messages
            if (messages.length > 0) await putBack(agent, messages)
          }
          if (clock.now() >= deadline) return []
          await next.arrived
        } finally {
          next.forget()
        }
      }
      return []
    },
    async acknowledge(tx, agent, ids, evidence) {
      const keys = new Map<number, string>()
      const unknown: string[] = []
      for (const id of ids) {
        const key = parseId('msg', id)
        if (key === undefined) unknown.push(id)
        else keys.set(key, id)
      }
      const done = await moveDeliveries(tx, agent, [...keys.keys()], 'read', evidence)
      for (const key of done) keys.delete(key)
      if (done.length > 0) await seeMoved(tx, agent, done, 'read', evidence)
      const known = new Set(await knownDeliveries(tx, agent, [...keys.keys()]))
      const already_read: string[] = []
      for (const [key, id] of keys) (known.has(key) ? already_read : unknown).push(id)
      return { acknowledged: done.map((key) => formatId('msg', key)), already_read, unknown }
    },
  }
}

function causeFrom(mail: Mail) {
  return {
    key: parseId('msg', mail.id)!,
    hop: mail.hop,
    correlation: parseId('msg', mail.correlationId)!,
    isNamed: false,
  }
}

/** Sends a message from the service to an agent, such as a verdict or a warning. */
export async function post(
  tx: Tx,
  mailboxes: Mailboxes,
  message: { to: string; title: string; content: string; priority: Priority },
): Promise<void> {
  await mailboxes.send(tx, { ...message, from: ORCHESTRATOR, hop: 0 }, { text: message.title })
}
