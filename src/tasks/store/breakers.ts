import type { MaybePromise, Reader, Tx } from '../../store/store.ts'
import { type Breaker, CLOSED, recordOutcome, type WorkOutcome } from '../core/breaker.ts'
import type { BreakerSettings } from '../core/settings.ts'

interface BreakerRow {
  failures: number
  opened_at: number | null
  tried_at: number | null
}

async function findBreaker(reader: Reader, agent: string): Promise<Breaker | undefined> {
  const row = await reader.get<BreakerRow>('SELECT * FROM breakers WHERE agent = ?', [agent])
  if (row === undefined) return undefined
  return { failures: row.failures, openedAt: row.opened_at, triedAt: row.tried_at }
}

/** A breaker without failures has no row. */
async function storeBreaker(tx: Tx, agent: string, breaker: Breaker): Promise<void> {
  if (breaker.failures === 0) {
    await tx.run('DELETE FROM breakers WHERE agent = ?', [agent])
    return
  }
  await tx.run(
    `INSERT INTO breakers (agent, failures, opened_at, tried_at) VALUES (?, ?, ?, ?)
     ON CONFLICT (agent) DO UPDATE SET failures = excluded.failures, opened_at = excluded.opened_at,
       tried_at = excluded.tried_at`,
    [agent, breaker.failures, breaker.openedAt, breaker.triedAt],
  )
}

/** Circuit breakers of agents. Caches which are closed (most are) unless another daemon on the store could open one. */
export function createBreakers() {
  const closed = new Set<string>()
  const isClosed = (tx: Tx, agent: string) => tx.lockRow === '' && closed.has(agent)

  async function load(tx: Tx, agent: string): Promise<Breaker> {
    const found = await findBreaker(tx, agent)
    if (found === undefined && tx.lockRow === '') tx.afterCommit(() => closed.add(agent))
    return found ?? CLOSED
  }

  async function change(tx: Tx, agent: string, outcome: WorkOutcome, settings: BreakerSettings) {
    const before = await load(tx, agent)
    const after = recordOutcome(before, outcome, tx.now, settings)
    if (after === before) return
    // Now for this transaction, and again after the `closed.add` that `load` may have scheduled.
    closed.delete(agent)
    tx.afterCommit(() => closed.delete(agent))
    await storeBreaker(tx, agent, after)
  }

  return {
    find: (tx: Tx, agent: string): MaybePromise<Breaker> => (isClosed(tx, agent) ? CLOSED : load(tx, agent)),
    /** Undefined if there is nothing to await: a success doesn't change a closed breaker. */
    record(
      tx: Tx,
      agent: string,
      outcome: WorkOutcome,
      settings: BreakerSettings,
    ): Promise<void> | undefined {
      if (outcome === 'success' && isClosed(tx, agent)) return undefined
      return change(tx, agent, outcome, settings)
    },
  }
}
