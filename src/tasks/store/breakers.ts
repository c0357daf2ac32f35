import type { Reader, Tx } from '../../store/store.ts'
import type { Breaker } from '../core/breaker.ts'

interface BreakerRow {
  failures: number
  opened_at: number | null
  tried_at: number | null
}

export async function findBreaker(reader: Reader, agent: string): Promise<Breaker | undefined> {
  const row = await reader.get<BreakerRow>('SELECT * FROM breakers WHERE agent = ?', [agent])
  if (row === undefined) return undefined
  return { failures: row.failures, openedAt: row.opened_at, triedAt: row.tried_at }
}

/** Only what has failed of late is kept. */
export async function keepBreaker(tx: Tx, agent: string, breaker: Breaker): Promise<void> {
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
