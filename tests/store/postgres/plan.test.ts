import { afterAll, describe, expect, it } from 'vitest'
import { readLog } from '../../../src/messages/messages.ts'
import { openPostgresStore } from '../../../src/store/postgres/open.ts'
import { startPostgres } from '../../fakes/postgres-server.ts'
import { storeOptions } from '../store-fixture.ts'

const server = await startPostgres()
afterAll(() => server.stop())

/** Enough rows that the planner prefers an index; some of them are one long thread. */
const FILL = `
  INSERT INTO messages (seq, sender, recipient, title, content, priority, correlation, hop, at, quiet, digest)
    SELECT n, 'Ada', 'a' || n % 100, 't', repeat('c', 100), 1, CASE WHEN n % 50 = 0 THEN 50 ELSE n END, 0, 1, 0, 'd'
      FROM generate_series(1, 20000) n;
  INSERT INTO deliveries (recipient, message, priority, state, attempts, updated_at)
    SELECT 'a' || n % 100, n, 1, 'read', 1, 1 FROM generate_series(1, 20000) n;
  ANALYZE messages; ANALYZE deliveries`

describe('the plan of a query in PostgreSQL', () => {
  it('for one thread reads the messages of that thread only (S1.14)', async () => {
    const url = await server.createSchema()
    const store = await openPostgresStore(url, storeOptions({}))
    try {
      await server.query(FILL, url)
      const plans: string[] = []
      const all: typeof store.all = async (sql, params) => {
        const steps = await store.all<Record<string, string>>(`EXPLAIN ${sql}`, params)
        plans.push(steps.map((step) => Object.values(step)[0]).join('\n'))
        return []
      }
      await readLog({ ...store, all }, { thread: 51, limit: 500 })
      expect(plans).toEqual([expect.stringMatching(/messages_of_thread/)])
      expect(plans[0]).not.toMatch(/Seq Scan/)
    } finally {
      await store.close()
    }
  })
})
