import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { queuedUrgent } from '../messages/delivery-states.ts'
import type { Session } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'

export interface InterruptResult {
  stopped: boolean
  evidence: string
}

/** Interrupts per session that haven't returned yet. */
const pending = new WeakMap<Session, Promise<InterruptResult>>()

/** Shares one interrupt among all who want to end the same turn: some programs treat a second one differently. */
export function interruptOnce(session: Session): Promise<InterruptResult> {
  const running = pending.get(session) ?? session.interrupt().finally(() => pending.delete(session))
  pending.set(session, running)
  return running
}

/** While an interrupt is pending, nothing may be handed over: the interrupt could end that turn, or clear it away. */
export function pendingInterrupt(session: Session | undefined): Promise<unknown> | undefined {
  return session === undefined ? undefined : pending.get(session)
}

interface InterruptsOptions {
  name: string
  store: Store
  clock: Clock
  log: Log
  /** The session, as long as it is in a turn that a halt must end. */
  turnToHalt(): Session | undefined
}

export type Interrupts = ReturnType<typeof createInterrupts>

/** How often, and how long apart, a turn that doesn't stop is interrupted. */
const RETRIES = { tries: 3, apartMs: 1500 }

/** Ends turns of one agent, and records whether the turn really stopped (ask 11). */
export function createInterrupts({ name, store, clock, log, turnToHalt }: InterruptsOptions) {
  let halting: Promise<InterruptResult | undefined> | undefined

  async function record({ stopped, evidence }: InterruptResult, actor: string, why: string) {
    await store.write((tx) =>
      tx.audit({
        type: stopped ? 'session.interrupted' : 'session.not_interrupted',
        class: 'internal',
        actor,
        subject: name,
        text: stopped
          ? `${name} was interrupted ${why}: ${evidence}`
          : `${name} did not stop ${why}: ${evidence}`,
        data: { agent: name, stopped, evidence },
      }),
    )
  }

  async function attempt(session: Session): Promise<InterruptResult> {
    return await interruptOnce(session).catch((error: unknown) => ({
      stopped: false,
      evidence: `the runtime failed: ${reasonOf(error)}`,
    }))
  }

  /** Returns undefined if there was no turn to end. */
  async function endTurn(toEnd: () => Session | undefined, onTried?: (result: InterruptResult) => void) {
    let result: InterruptResult | undefined
    for (let tries = 1; tries <= RETRIES.tries; tries++) {
      const session = toEnd()
      if (session === undefined) return result
      result = await attempt(session)
      onTried?.(result)
      if (result.stopped || tries === RETRIES.tries) return result
      await new Promise<void>((resolve) => clock.after(RETRIES.apartMs, resolve))
    }
    return result
  }

  async function haltTurn(by: string, handingOver: Promise<unknown> | undefined) {
    await handingOver
    return await endTurn(turnToHalt, (result) => {
      // A halt doesn't wait for the disk.
      record(result, by, 'because everything was stopped').catch((error: unknown) =>
        log.error({ agent: name, err: error }, 'could not record an interrupt'),
      )
    })
  }

  return {
    async forUrgent(toEnd: () => Session | undefined, senders: Iterable<string>) {
      const result = await endTurn(toEnd)
      if (result === undefined) return undefined
      for (const from of senders) await record(result, from, 'for an urgent message')
      return result
    },
    async forPerson(session: Session, by: string): Promise<InterruptResult> {
      const result = await attempt(session)
      await record(result, by, `by ${by}`)
      return result
    },
    /** Joins a halt that is under way. Returns undefined if there was no turn to end. */
    halt(by: string, handingOver: Promise<unknown> | undefined) {
      halting ??= haltTurn(by, handingOver).finally(() => {
        halting = undefined
      })
      return halting
    },
  }
}

interface UrgentInterruptsOptions {
  name: string
  store: Store
  interrupts(): Interrupts
  /** The session, as long as it is in that turn and may get messages. */
  inTurn(turn: number): Session | undefined
  /** The number of the current turn, or of the last one. */
  turn(): number
  /** Whether an ordinary message began the turn, or it was found running: neither an urgent message nor a person did. */
  isTurnOrdinary(): boolean
  handingOver(): Promise<unknown> | undefined
}

export type UrgentInterrupts = ReturnType<typeof createUrgentInterrupts>

/** Ends the turn that keeps an urgent message waiting, even one that begins after the message came (C2, ask 11). */
export function createUrgentInterrupts(options: UrgentInterruptsOptions) {
  const { name, store, inTurn, turn } = options
  /** False saves a query per turn. True at first, because an earlier service may have left an urgent message. */
  let isPossible = true
  /**
   * Messages that have ended a turn. Each may end only one turn that a person or another urgent message began. Otherwise
   * such turns would never finish, and a person's interrupted input would block the message itself.
   */
  const served = new Set<number>()
  /** Senders whose wish is recorded with the result, including those who ask while the turn is being stopped. */
  const senders = new Set<string>()
  let looking: Promise<void> | undefined
  let again = false

  async function lookOnce() {
    const current = turn()
    if (!isPossible || inTurn(current) === undefined) return
    isPossible = false
    const queued = await queuedUrgent(store, name).catch((error: unknown) => {
      isPossible = true
      throw error
    })
    if (queued.length === 0) return
    isPossible = true
    const waiting = options.isTurnOrdinary() ? queued : queued.filter(({ message }) => !served.has(message))
    if (waiting.length === 0) return
    // Wait for the hand-over: an interrupt in the middle of it would make that turn uncertain.
    await options.handingOver()
    for (const { sender } of waiting) senders.add(sender)
    const result = await options.interrupts().forUrgent(() => inTurn(current), senders)
    if (result?.stopped === true) for (const { message } of waiting) served.add(message)
  }

  async function lookWhileAsked() {
    do {
      again = false
      await lookOnce()
      senders.clear()
    } while (again)
  }

  return {
    /** An urgent message may wait in the queue from now on; `from` is its sender, where known. */
    mayWait(from?: string) {
      isPossible = true
      if (from !== undefined) senders.add(from)
    },
    /** Interrupts the agent's turn if an urgent message waits. Resolves when the turn stopped or all tries are used up. */
    look(): Promise<void> {
      again = true
      looking ??= lookWhileAsked().finally(() => {
        looking = undefined
      })
      return looking
    },
  }
}
