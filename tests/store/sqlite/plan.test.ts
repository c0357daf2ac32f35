import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readTree } from '../../../src/audit/store.ts'
import {
  claimDeliveries,
  countQueued,
  releaseExpired,
  unconfirmedDeliveries,
} from '../../../src/messages/delivery-states.ts'
import { readLog, readMailbox } from '../../../src/messages/messages.ts'
import { findOpenQuestion } from '../../../src/people/people.ts'
import type { Reader, SqlValue, Tx } from '../../../src/store/store.ts'
import { createSqliteFixture, type SqliteFixture } from '../sqlite-fixture.ts'

let fixture: SqliteFixture
beforeEach(async () => {
  fixture = await createSqliteFixture()
})
afterEach(() => fixture.clear())

const CLAIM = { agent: 'Bob', until: 1, evidence: 'poll', limit: 6, maxBytes: 100_000 }

const LOOKS: Record<string, (tx: Tx) => Promise<unknown>> = {
  'handing out': (tx) => claimDeliveries(tx, CLAIM),
  'handing out by priority': (tx) => claimDeliveries(tx, { ...CLAIM, byPriority: true }),
  'counting what waits': (tx) => countQueued(tx, 'Bob', 100),
  'looking for what is in doubt': (tx) => unconfirmedDeliveries(tx, 'Bob'),
  'taking back what was not acknowledged': (tx) => releaseExpired(tx, 'Bob'),
  'an unread mailbox': (tx) => readMailbox(tx, 'Bob', 'unread'),
}

/** A reader that finds nothing and collects the query plans. */
function explaining(store: Reader) {
  const plans: string[] = []
  const explain = async (sql: string, params: readonly SqlValue[] = []) => {
    plans.push(await planOf(store, sql, params))
  }
  const all: Reader['all'] = (sql, params) => explain(sql, params).then(() => [])
  const get: Reader['get'] = (sql, params) => explain(sql, params).then(() => undefined)
  return { plans, all, get }
}

/** A transaction that notes the queries it runs. */
function notingQueries(tx: Tx) {
  const asked: [sql: string, params: readonly SqlValue[]][] = []
  const noted = <Ask extends Tx['all'] | Tx['get']>(ask: Ask) =>
    ((sql: string, params: readonly SqlValue[] = []) => {
      asked.push([sql, params])
      return ask(sql, params)
    }) as Ask
  return { asked, noting: { ...tx, all: noted(tx.all), get: noted(tx.get) } }
}

async function planOf(reader: Reader, sql: string, params: readonly SqlValue[]): Promise<string> {
  const steps = await reader.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql}`, params)
  return steps.map((step) => step.detail).join('; ')
}

describe('the plan of a query', () => {
  it.each(Object.entries(LOOKS))('for %s reads open deliveries only, not the history', async (_, look) => {
    const store = await fixture.open()
    const plans: string[] = []
    await store.write(async (tx) => {
      const { asked, noting } = notingQueries(tx)
      await look(noting)
      for (const [sql, params] of asked) plans.push(await planOf(tx, sql, params))
    })
    expect(plans).not.toHaveLength(0)
    for (const plan of plans) expect(plan).toMatch(/\b(?:d|deliveries) USING INDEX deliveries_open/)
    await store.close()
  })

  it.each(['handing out by priority', 'counting what waits'])(
    'of %s is made once, as no limit is bound to it',
    async (name) => {
      const store = await fixture.open()
      await store.write(async (tx) => {
        const { asked, noting } = notingQueries(tx)
        await LOOKS[name]!(noting)
        expect(asked).toEqual([[expect.stringMatching(/LIMIT \d+/), expect.anything()]])
      })
      await store.close()
    },
  )

  it('for a tree of tasks reads its entries in order, not the whole audit', async () => {
    const store = await fixture.open()
    const { plans, all } = explaining(store)
    await readTree({ daemon: store.daemon, all }, 7, { after: 3, limit: 10 })
    expect(plans).toEqual([expect.stringMatching(/audit USING INDEX audit_of_tree \(root=\? AND .*>\?\)/)])
    expect(plans[0]).toMatch(/audit USING INDEX audit_of_halts \(chain=\? AND seq>\?\)/)
    expect(plans[0]).not.toMatch(/SCAN audit/)
    await store.close()
  })

  it('for the question of one task reads that request only', async () => {
    const store = await fixture.open()
    const { plans, get } = explaining(store)
    await findOpenQuestion({ ...store, get }, 'task_7', 'req_3')
    expect(plans).toEqual([expect.stringMatching(/USING INDEX human_requests_of_task \(context=\?\)$/)])
    await store.close()
  })

  it('for one thread reads the messages of that thread only (S1.14)', async () => {
    const store = await fixture.open()
    const { plans, all } = explaining(store)
    await readLog({ ...store, all }, { thread: 7, limit: 500 })
    await readLog({ ...store, all }, { thread: 7, before: 90, limit: 500 })
    for (const plan of plans) {
      expect(plan).toMatch(/^SEARCH m USING INDEX messages_of_thread \(correlation=\? AND seq>/)
      expect(plan).not.toMatch(/SCAN|TEMP B-TREE/)
    }
    expect(plans).toHaveLength(2)
    await store.close()
  })
})
