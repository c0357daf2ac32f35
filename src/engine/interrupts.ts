import type { Session } from '../runtimes/runtime.ts'
import type { Store } from '../store/store.ts'
import type { Clock, Log } from './surroundings.ts'

export interface InterruptsOptions {
  name: string
  store: Store
  clock: Clock
  log: Log
  /** The session, as long as its turn is to be ended in a halt. */
  toHalt(): Session | undefined
}

export interface Outcome {
  stopped: boolean
  evidence: string
}

/** How often, and how long apart, a turn that does not stop is interrupted in a halt. */
const HALT = { tries: 3, apartMs: 1500 }

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

  async function haltTurn(by: string, given: Promise<unknown> | undefined) {
    await given
    let outcome: Outcome | undefined
    for (let tries = 0; tries < HALT.tries; tries++) {
      const running = toHalt()
      if (running?.state !== 'busy') return outcome
      outcome = await running.interrupt().catch((error: unknown) => ({
        stopped: false,
        evidence: `the runtime failed: ${error instanceof Error ? error.message : String(error)}`,
      }))
      // Whoever stopped everything does not wait for the disk.
      note(outcome, by, 'because everything was stopped').catch((error: unknown) =>
        log.error({ agent: name, err: error }, 'an interrupt could not be written down'),
      )
      if (outcome.stopped) return outcome
      await new Promise<void>((resolve) => clock.after(HALT.apartMs, resolve))
    }
    return outcome
  }

  return {
    async forUrgent(running: Session, from: string) {
      await note(await running.interrupt(), from, 'for an urgent message')
    },
    async forPerson(running: Session, by: string): Promise<Outcome> {
      const outcome = await running.interrupt()
      await note(outcome, by, `by ${by}`)
      return outcome
    },
    /** One at a time: to some programs two interrupts in a row mean something else. Undefined: there was no turn. */
    halt(by: string, given: Promise<unknown> | undefined) {
      halting ??= haltTurn(by, given).finally(() => {
        halting = undefined
      })
      return halting
    },
  }
}
