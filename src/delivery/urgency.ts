import { queuedUrgent } from '../messages/store/urgent-mail.ts'
import type { Session } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { Interrupts } from './interrupts.ts'

/** Ends the turn that keeps an urgent message waiting, also one that begins after it came (C2, ask 11 of the field). */
export interface Urgency {
  /** An urgent one, of that sender where it is known, may wait in the queue from now on. */
  came(from?: string): void
  /** Interrupts the agent's turn if an urgent one waits. Resolves when it stopped, or was tried often enough. */
  look(): Promise<void>
}

export interface UrgencyOptions {
  name: string
  store: Store
  interrupts(): Interrupts
  /** The session as long as it is in that turn, and nothing keeps messages from it. */
  inTurn(turn: number): Session | undefined
  /** Which turn it is in, or was in last. */
  turn(): number
  /** Begun by an ordinary message, or found in the middle of one: not by an urgent one, not by a person. */
  isTurnOrdinary(): boolean
  /** Settled when the turn that is being given has been. */
  giving(): Promise<unknown> | undefined
}

export function createUrgency(options: UrgencyOptions): Urgency {
  const { name, store, inTurn, turn } = options
  /** Spares a look into the store with each turn. At first nobody knows what an earlier service left. */
  let mayWait = true
  /**
   * Messages that ended a turn already: each ends one that another urgent one or a person began only once. Otherwise none
   * of those would ever end; and what a person had sent stands in the input box again, in the way of the message.
   */
  const heeded = new Set<number>()
  /** Who is told in the record whether the turn stopped: also whoever asks while it is being stopped. */
  const asking = new Set<string>()
  let looking: Promise<void> | undefined
  let again = false

  async function lookOnce() {
    const mine = turn()
    if (!mayWait || inTurn(mine) === undefined) return
    mayWait = false
    const queued = await queuedUrgent(store, name).catch((error: unknown) => {
      mayWait = true
      throw error
    })
    if (queued.length === 0) return
    mayWait = true
    const waiting = options.isTurnOrdinary() ? queued : queued.filter(({ message }) => !heeded.has(message))
    if (waiting.length === 0) return
    // What is being given is in the turn, or is not: an interrupt in between would leave that in doubt.
    await options.giving()
    for (const { sender } of waiting) asking.add(sender)
    const outcome = await options.interrupts().forUrgent(() => inTurn(mine), asking)
    if (outcome?.stopped === true) for (const { message } of waiting) heeded.add(message)
  }

  async function lookWhileAsked() {
    do {
      again = false
      await lookOnce()
      asking.clear()
    } while (again)
  }

  return {
    came(from) {
      mayWait = true
      if (from !== undefined) asking.add(from)
    },
    look() {
      again = true
      looking ??= lookWhileAsked().finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}
