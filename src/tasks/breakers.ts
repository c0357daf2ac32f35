import type { MaybePromise, Tx } from '../store/store.ts'
import { type Breaker, CLOSED, type Outcome, recordOutcome } from './core/breaker.ts'
import type { BreakerSettings } from './core/settings.ts'
import { findBreaker, keepBreaker } from './store/breakers.ts'

/** The breakers of agents. Most are closed, and that is remembered where no other daemon could have opened one. */
export function createBreakers() {
  const closed = new Set<string>()
  const isClosed = (tx: Tx, agent: string) => tx.lockRow === '' && closed.has(agent)

  async function look(tx: Tx, agent: string): Promise<Breaker> {
    const found = await findBreaker(tx, agent)
    if (found === undefined && tx.lockRow === '') tx.afterCommit(() => closed.add(agent))
    return found ?? CLOSED
  }

  async function change(tx: Tx, agent: string, outcome: Outcome, settings: BreakerSettings) {
    const known = await look(tx, agent)
    const after = recordOutcome(known, outcome, tx.now, settings)
    if (after === known) return
    // At once for those in the same transaction, and again behind what they have noted for after it.
    closed.delete(agent)
    tx.afterCommit(() => closed.delete(agent))
    await keepBreaker(tx, agent, after)
  }

  return {
    find: (tx: Tx, agent: string): MaybePromise<Breaker> => (isClosed(tx, agent) ? CLOSED : look(tx, agent)),
    /** Undefined where there is nothing to wait for: a success changes nothing about a closed one. */
    record(tx: Tx, agent: string, outcome: Outcome, settings: BreakerSettings): Promise<void> | undefined {
      if (outcome === 'success' && isClosed(tx, agent)) return undefined
      return change(tx, agent, outcome, settings)
    },
  }
}
