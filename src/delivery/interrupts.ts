import type { Clock } from '../base/clock.ts'
import { reasonOf } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Session } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'

export interface InterruptsOptions {
  name: string
  store: Store
  clock: Clock
  log: Log
  /** The session, as long as it is in a turn that is to be ended in a halt. */
  toHalt(): Session | undefined
}

export interface Outcome {
  stopped: boolean
  evidence: string
}

/** How often, and how long apart, a turn that does not stop is interrupted. */
const AGAIN = { tries: 3, apartMs: 1500 }

const underWay = new WeakMap<Session, Promise<Outcome>>()

/** One for all who would end the same turn: to some programs two interrupts in a row mean something else. */
export function interruptOnce(session: Session): Promise<Outcome> {
  const running = underWay.get(session) ?? session.interrupt().finally(() => underWay.delete(session))
  underWay.set(session, running)
  return running
}

/** Until it is settled nothing may be given to the agent: the interrupt could end that turn, or clear it away. */
export function interruptUnderWay(session: Session | undefined): Promise<unknown> | undefined {
  return session === undefined ? undefined : underWay.get(session)
}

export type Interrupts = ReturnType<typeof createInterrupts>

/** Ends turns of one agent. Whether it truly stopped is on record, for whoever asked for it (ask 11 of the field). */
export function createInterrupts({ name, store, clock, log, toHalt }: InterruptsOptions) {
  let halting: Promise<Outcome | undefined> | undefined

  async function note({ stopped, evidence }: Outcome, actor: string, why: string) {
    await store.write((tx) =>
      tx.audit({
        type: stopped ? 'session.interrupted' : 'session.not_interrupted',
        class: 'internal',
        actor,
        subject: name,
        text: stopped
          ? `${name} was interrupted ${why}: ${evidence}`
          : `${name} was to stop ${why} and did not: ${evidence}`,
        data: { agent: name, stopped, evidence },
      }),
    )
  }

  async function attempt(running: Session): Promise<Outcome> {
    return await interruptOnce(running).catch((error: unknown) => ({
      stopped: false,
      evidence: `the runtime failed: ${reasonOf(error)}`,
    }))
  }

  /** Until it stops, a few times. Undefined: there was no turn to end. */
  async function endTurn(toEnd: () => Session | undefined, tried?: (outcome: Outcome) => void) {
    let outcome: Outcome | undefined
    for (let tries = 0; tries < AGAIN.tries; tries++) {
      const running = toEnd()
      if (running === undefined) return outcome
      outcome = await attempt(running)
      tried?.(outcome)
      if (outcome.stopped || tries + 1 === AGAIN.tries) return outcome
      await new Promise<void>((resolve) => clock.after(AGAIN.apartMs, resolve))
    }
    return outcome
  }

  async function haltTurn(by: string, given: Promise<unknown> | undefined) {
    await given
    return await endTurn(toHalt, (outcome) => {
      // Whoever stopped everything does not wait for the disk.
      note(outcome, by, 'because everything was stopped').catch((error: unknown) =>
        log.error({ agent: name, err: error }, 'an interrupt could not be written down'),
      )
    })
  }

  return {
    async forUrgent(toEnd: () => Session | undefined, senders: Iterable<string>) {
      const outcome = await endTurn(toEnd)
      if (outcome === undefined) return undefined
      for (const from of senders) await note(outcome, from, 'for an urgent message')
      return outcome
    },
    async forPerson(running: Session, by: string): Promise<Outcome> {
      const outcome = await attempt(running)
      await note(outcome, by, `by ${by}`)
      return outcome
    },
    /** One halt at a time. Undefined: there was no turn. */
    halt(by: string, given: Promise<unknown> | undefined) {
      halting ??= haltTurn(by, given).finally(() => {
        halting = undefined
      })
      return halting
    },
  }
}
