import { findBreaker, keepBreaker } from '../../store/breakers.ts'
import type { Tx } from '../../store/store.ts'
import { type Breaker, CLOSED } from '../../tasks/breaker.ts'

/** The breakers of agents. Most are closed, and that is remembered where no other daemon could have opened one. */
export function createBreakers() {
  const closed = new Set<string>()
  return {
    async find(tx: Tx, agent: string): Promise<Breaker> {
      const isAlone = tx.lockRow === ''
      if (isAlone && closed.has(agent)) return CLOSED
      const found = await findBreaker(tx, agent)
      if (isAlone && found === undefined) tx.afterCommit(() => closed.add(agent))
      return found ?? CLOSED
    },
    async keep(tx: Tx, agent: string, breaker: Breaker) {
      // At once for those in the same transaction, and again behind what they have noted for after it.
      closed.delete(agent)
      tx.afterCommit(() => closed.delete(agent))
      await keepBreaker(tx, agent, breaker)
    },
  }
}
