import { expect, it } from 'vitest'
import { genesisHash } from '../../../src/audit/chain.ts'
import type { AuditDraft, AuditEntry } from '../../../src/audit/entry.ts'
import { type AuditQuery, readTree, streamAudit, toEntry } from '../../../src/audit/store.ts'
import { readHead } from '../../../src/store/group-commit.ts'
import type { Store } from '../../../src/store/store.ts'
import { type CurrentFixture, START, send, verifyAudit } from '../store-fixture.ts'

const ENTRIES: AuditDraft[] = [
  { type: 'message.accepted', class: 'internal', actor: 'Ada', subject: 'Bob', text: 'first: 100 % done' },
  {
    type: 'message.accepted',
    class: 'internal',
    actor: 'Bob',
    subject: 'Ada',
    text: 'second',
    confidence: 0.75,
  },
  {
    type: 'messages.other',
    class: 'public',
    actor: 'Ada',
    text: 'third: snake_case',
    data: { note: 'Übung' },
  },
  {
    type: 'agent.flagged',
    class: 'private',
    actor: 'orchestrator',
    subject: 'Ada',
    text: 'fourth: 100 percent',
  },
  { type: 'agent.started', class: 'internal', actor: 'Cleo', subject: 'Dan', text: 'fifth: back\\slash' },
]

const QUERIES: [string, AuditQuery, string][] = [
  ['all', {}, '12345'],
  ['after a number', { after: 3 }, '45'],
  ['since a time', { since: START + 2 }, '2345'],
  ['until a time', { until: START + 2 }, '12'],
  ['of an agent', { agent: 'Ada' }, '1234'],
  ['of a pair, both ways', { agent: 'Bob', with: 'Ada' }, '12'],
  ['of a type', { type: 'message.accepted' }, '12'],
  ['of a kind of types', { type: 'message' }, '12'],
  ['of a class', { class: 'internal' }, '125'],
  ['with a text, in any case', { text: 'SECOND' }, '2'],
  ['with a text in the data, in its own case', { text: 'Übung' }, '3'],
  ['with a percent sign', { text: '100 %' }, '1'],
  ['with an underscore', { text: 'e_c' }, '3'],
  ['with a backslash', { text: 'k\\s' }, '5'],
  ['visible to a party', { visibleTo: 'Bob' }, '123'],
  ['of everything at once', { agent: 'Ada', class: 'internal', since: START, text: 'irs' }, '1'],
  ['the oldest two', { limit: 2 }, '12'],
  ['the newest two, oldest first', { limit: 2, newest: true }, '45'],
]

async function numbers(store: Store, query: AuditQuery): Promise<string> {
  let found = ''
  for await (const row of streamAudit(store, query)) found += row.seq
  return found
}

export function auditCases(fixture: CurrentFixture) {
  it('seals entries without gaps, in the transaction that they record (C12)', async () => {
    const store = await fixture().open()
    const heard: AuditEntry[] = []
    store.onCommit((entries) => heard.push(...entries))
    await Promise.allSettled([
      send(store),
      store.write((tx) => {
        tx.audit(ENTRIES[4]!)
        throw new Error('never happened')
      }),
      send(store),
      send(store),
    ])
    expect(heard.map((entry) => entry.seq)).toEqual([1, 2, 3])
    expect(heard.map((entry) => entry.type)).toEqual(Array(3).fill('message.accepted'))
    expect(heard[0]!.prev).toBe(genesisHash('main'))
    expect(await readHead(store, 'main')).toEqual({ chain: 'main', seq: 3, hash: heard[2]!.hash })
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 3 })
  })

  it('continues the chain after a reopening', async () => {
    const first = await fixture().open()
    await send(first)
    await first.close()
    const second = await fixture().open()
    await send(second)
    expect(await verifyAudit(second)).toMatchObject({ ok: true, count: 2 })
  })

  it('does not call a listener that has unsubscribed', async () => {
    const store = await fixture().open()
    let heard = 0
    const stop = store.onCommit(() => heard++)
    await send(store)
    stop()
    await send(store)
    expect(heard).toBe(1)
  })

  it('reads back what was sealed', async () => {
    const store = await fixture().open()
    await store.write((tx) => tx.audit({ ...ENTRIES[1]!, data: { nested: [1, { deep: 'ünïcödé' }] } }))
    for await (const row of streamAudit(store, {})) {
      expect(toEntry(row)).toMatchObject({ ...ENTRIES[1], at: new Date(START).toISOString(), chain: 'main' })
      expect(toEntry(row).data).toEqual({ nested: [1, { deep: 'ünïcödé' }] })
    }
  })

  it.each(QUERIES)('finds entries: %s', async (_, query, expected) => {
    let now = START
    const store = await fixture().open({ now: () => now })
    for (const entry of ENTRIES) {
      now++
      await store.write((tx) => tx.audit(entry))
    }
    expect(await numbers(store, query)).toBe(expected)
  })

  it('streams 10,000 rows as they were when it began', async () => {
    const store = await fixture().open()
    const insert = (from: number, to: number) =>
      `WITH RECURSIVE n (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to})
       INSERT INTO timers (kind, ref, due_at) SELECT 'k', CAST(i AS TEXT), i FROM n`
    await store.write((tx) => tx.run(insert(1, 10_000)))
    let count = 0
    for await (const row of store.stream<{ due_at: number }>('SELECT * FROM timers ORDER BY due_at')) {
      count++
      if (count === 5) await store.write((tx) => tx.run(insert(10_001, 10_100)))
      if (row.due_at !== count) break
    }
    expect(count).toBe(10_000)
    const left = await store.get<{ count: number }>('SELECT COUNT(*) AS count FROM timers')
    expect(left).toEqual({ count: 10_100 })
  })

  it('streams one table after another, whatever their columns', async () => {
    const store = await fixture().open()
    for (let round = 0; round < 3; round++) await send(store)
    for (let round = 0; round < 3; round++) {
      for (const column of ['seq', 'recipient', 'content']) {
        const rows: object[] = []
        for await (const row of store.stream<object>(`SELECT ${column} FROM messages ORDER BY seq`))
          rows.push(row)
        expect(rows.map((row) => Object.keys(row))).toEqual([[column], [column], [column]])
      }
    }
  })

  it('finds the entries of a tree of tasks in their order and in pages (S2.18)', async () => {
    const store = await fixture().open()
    const note = (text: string, data?: Record<string, unknown>): AuditDraft => ({
      ...{ type: 'task.noted', class: 'internal', actor: 'Ada', text },
      ...(data === undefined ? {} : { data }),
    })
    await store.write((tx) => {
      tx.audit(note('one', { root: 'task_7' }))
      tx.audit(note('of another', { root: 'task_8' }))
      tx.audit(note('of none'))
      tx.audit(note('no task', { root: 'msg_7' }))
      tx.audit(note('two', { root: 'task_7', task_id: 'task_9' }))
    })
    await store.write((tx) => tx.audit(note('three', { root: 'task_7' })))
    const texts = async (after: number, limit: number) =>
      (await readTree(store, 7, { after, limit })).map(({ text }) => text)
    expect(await texts(0, 10)).toEqual(['one', 'two', 'three'])
    expect(await texts(0, 2)).toEqual(['one', 'two'])
    const [first] = await readTree(store, 7, { after: 0, limit: 1 })
    expect(await texts(first!.seq, 10)).toEqual(['two', 'three'])
    expect(await readTree(store, 99, { after: 0, limit: 10 })).toEqual([])
    expect(await verifyAudit(store)).toMatchObject({ ok: true })
  })

  it('keeps reading and writing after streams that were abandoned or failed', async () => {
    const store = await fixture().open()
    for (let round = 0; round < 5; round++) await send(store)
    for (let round = 0; round < 5; round++) {
      for await (const row of store.stream<{ seq: number }>(
        'SELECT seq FROM messages WHERE seq > ? ORDER BY seq',
        [1],
      )) {
        expect(row).toEqual({ seq: 2 })
        break
      }
      const failing = async () => {
        for await (const _ of store.stream('SELECT nonsense')) break
      }
      await expect(failing()).rejects.toThrow('nonsense')
    }
    expect(await send(store)).toBe(6)
  })
}
