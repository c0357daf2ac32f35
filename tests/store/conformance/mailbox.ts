import { expect, it } from 'vitest'
import {
  claimDeliveries,
  countOpen,
  countQueued,
  type DeliveryClaim,
  moveDeliveries,
  releaseExpired,
  unansweredDeliveries,
} from '../../../src/messages/delivery-states.ts'
import {
  findMail,
  type Mail,
  type MailboxFilter,
  readLog,
  readMailbox,
} from '../../../src/messages/messages.ts'
import type { Store } from '../../../src/store/store.ts'
import { type CurrentFixture, START, send } from '../store-fixture.ts'

const ids = (mails: readonly Mail[]) => mails.map((mail) => mail.id).join(' ')

async function claim(store: Store, over: Partial<DeliveryClaim> = {}): Promise<Mail[]> {
  return await store.write((tx) =>
    claimDeliveries(tx, {
      agent: 'Bob',
      until: tx.now + 30_000,
      evidence: 'long poll',
      limit: 100,
      maxBytes: 1_000_000,
      ...over,
    }),
  )
}

const acknowledge = (store: Store, keys: number[]) =>
  store.write((tx) => moveDeliveries(tx, 'Bob', keys, 'read', 'acknowledged by id'))

export function mailboxCases(fixture: CurrentFixture) {
  it('moves a delivery forward only with evidence, and read stays read (C27)', async () => {
    let now = START
    const store = await fixture().open({ now: () => now })
    await send(store)
    expect(await findMail(store, 1)).toMatchObject({ delivery: 'queued', attempts: 0 })

    expect(await claim(store)).toMatchObject([{ delivery: 'written', attempts: 1, evidence: 'long poll' }])
    expect(await findMail(store, 1)).toMatchObject({ delivery: 'written', attempts: 1 })
    expect(await claim(store)).toEqual([])

    now += 29_999
    expect(await store.write((tx) => releaseExpired(tx, 'Bob'))).toEqual({
      released: [],
      nextDue: START + 30_000,
    })
    now += 1
    expect(await store.write((tx) => releaseExpired(tx, 'Bob'))).toEqual({
      released: [1],
      nextDue: undefined,
    })
    expect(await findMail(store, 1)).toMatchObject({
      delivery: 'queued',
      attempts: 1,
      evidence: 'no acknowledgement in time',
    })

    expect(await claim(store)).toMatchObject([{ delivery: 'written', attempts: 2 }])
    expect(await acknowledge(store, [1, 77])).toEqual([1])
    expect(await findMail(store, 1)).toMatchObject({ delivery: 'read', evidence: 'acknowledged by id' })

    now += 60_000
    expect(await acknowledge(store, [1])).toEqual([])
    expect((await store.write((tx) => releaseExpired(tx, 'Bob'))).released).toEqual([])
    expect(await claim(store)).toEqual([])
    expect(await findMail(store, 1)).toMatchObject({ delivery: 'read', attempts: 2 })
  })

  it('hands each message out once, however many claim it at the same time', async () => {
    const store = await fixture().open()
    for (let count = 0; count < 20; count++) await send(store)
    const claims = await Promise.all(Array.from({ length: 10 }, () => claim(store, { limit: 3 })))
    const claimed = claims.flat().map((mail) => mail.id)
    expect(claimed).toHaveLength(20)
    expect(new Set(claimed).size).toBe(20)
  })

  it('hands out as many as requested, by number and size, but at least one', async () => {
    const store = await fixture().open()
    for (const content of ['é'.repeat(50), 'b'.repeat(50), 'c', 'd']) await send(store, { content })
    expect(ids(await claim(store, { maxBytes: 10 }))).toBe('msg_1')
    expect(ids(await claim(store, { maxBytes: 51 }))).toBe('msg_2 msg_3')
    expect(ids(await claim(store, { limit: 1 }))).toBe('msg_4')
  })

  it('hands out in order of arrival, or by priority (C2)', async () => {
    const store = await fixture().open()
    for (const priority of ['low', 'urgent', 'normal', 'urgent'] as const) await send(store, { priority })
    expect(ids(await claim(store, { limit: 1 }))).toBe('msg_1')
    expect(ids(await claim(store, { byPriority: true }))).toBe('msg_2 msg_4 msg_3')
  })

  it.each([
    ['all', 'msg_1 msg_2 msg_3 msg_4 msg_5'],
    ['unread', 'msg_1 msg_4 msg_5'],
    ['urgent', 'msg_4'],
  ] as [MailboxFilter, string][])('reads %s in order, and deletes nothing (C1)', async (filter, expected) => {
    const store = await fixture().open()
    await send(store)
    await send(store, { priority: 'urgent' })
    await send(store)
    await send(store, { priority: 'urgent' })
    await send(store)
    await send(store, { to: 'Cleo', priority: 'urgent' })
    await acknowledge(store, [2])
    await store.write((tx) => moveDeliveries(tx, 'Bob', [3], 'written', 'pasted'))
    await store.write((tx) => moveDeliveries(tx, 'Bob', [5], 'uncertain', 'no echo seen'))
    expect(ids(await readMailbox(store, 'Bob', filter))).toBe(expected)
  })

  it('finds messages taken after the last answered one, also an earlier one that arrived later (C2, C25)', async () => {
    let now = START
    const store = await fixture().open({ now: () => now })
    for (let count = 1; count <= 6; count++) await send(store, { to: count === 6 ? 'Cleo' : 'Bob' })
    const move = (keys: number[], state: 'submitted' | 'read') => {
      now += 1
      return store.write((tx) => moveDeliveries(tx, 'Bob', keys, state, 'its transcript'))
    }
    await move([1, 3], 'submitted')
    expect(await unansweredDeliveries(store, 'Bob')).toEqual([1, 3])
    await move([3], 'read')
    await move([2, 5], 'submitted')
    expect(await unansweredDeliveries(store, 'Bob')).toEqual([2, 5])
    expect(await unansweredDeliveries(store, 'Cleo')).toEqual([])
  })

  it('ignores evidence of a runtime for a message that was never handed out (C25)', async () => {
    const store = await fixture().open()
    await send(store)
    await send(store)
    await claim(store, { limit: 1 })
    const moved = await store.write((tx) =>
      moveDeliveries(tx, 'Bob', [1, 2], 'submitted', 'quoted by a person', { handedOut: true }),
    )
    expect(moved).toEqual([1])
    expect(await countQueued(store, 'Bob', 10)).toBe(1)
  })

  it('reads a mailbox in pages without losing a message', async () => {
    const store = await fixture().open()
    for (let count = 1; count <= 7; count++) await send(store, { to: count === 4 ? 'Cleo' : 'Bob' })
    expect(ids(await readMailbox(store, 'Bob', 'all', { limit: 3 }))).toBe('msg_1 msg_2 msg_3')
    expect(ids(await readMailbox(store, 'Bob', 'all', { limit: 3, after: 3 }))).toBe('msg_5 msg_6 msg_7')
    expect(ids(await readMailbox(store, 'Bob', 'all', { limit: 3, after: 7 }))).toBe('')
  })

  it('keeps the content byte for byte, with a replacement for characters that no database can hold (S0.6)', async () => {
    const store = await fixture().open()
    const content = `quotes ' " \` $1 ? \\ %_ \t\r\n ünïcödé 漢字 👩‍💻 \u2028 ${'x'.repeat(102_000)}`
    await send(store, { content, title: 'Ω' })
    await send(store, { content: 'NUL \0 and half a pair \ud83d.', title: '\udc00' })
    expect(await findMail(store, 1)).toMatchObject({ content, title: 'Ω' })
    expect(await findMail(store, 2)).toMatchObject({
      content: 'NUL \ufffd and half a pair \ufffd.',
      title: '\ufffd',
    })
  })

  it('keeps the message that a message answers, and its conversation', async () => {
    const store = await fixture().open()
    await send(store)
    await send(store, { from: 'Bob', to: 'Ada', inReplyTo: 1, correlation: 1, hop: 1 })
    expect(await findMail(store, 1)).toMatchObject({ correlationId: 'msg_1', hop: 0 })
    expect(await findMail(store, 2)).toMatchObject({ correlationId: 'msg_1', hop: 1, inReplyTo: 'msg_1' })
    expect(await findMail(store, 3)).toBeUndefined()
  })

  it('returns the log of the newest messages, oldest first (S1.8)', async () => {
    let now = START
    const store = await fixture().open({ now: () => now })
    for (const [from, to] of ['Ada Bob', 'Bob Cleo', 'Cleo Ada', 'Ada Bob'].map((pair) => pair.split(' '))) {
      await send(store, { from: from!, to: to! })
      now += 1000
    }
    expect(ids(await readLog(store, { limit: 2 }))).toBe('msg_3 msg_4')
    expect(ids(await readLog(store, { limit: 9, since: START + 1000 }))).toBe('msg_2 msg_3 msg_4')
    expect(ids(await readLog(store, { limit: 9, agent: 'Bob' }))).toBe('msg_1 msg_2 msg_4')
    expect(ids(await readLog(store, { limit: 9, agent: 'Bob', parties: ['Cleo'] }))).toBe('msg_2')
    expect(ids(await readLog(store, { limit: 9, parties: ['Cleo', 'Dan'] }))).toBe('msg_2 msg_3')
    expect(ids(await readLog(store, { limit: 9, parties: [] }))).toBe('')
  })

  it('counts open deliveries', async () => {
    const store = await fixture().open()
    for (let count = 0; count < 3; count++) await send(store)
    await claim(store, { limit: 1 })
    await acknowledge(store, [3])
    expect(await countQueued(store, 'Bob', 1000)).toBe(1)
    const counts = await countOpen(store)
    expect(counts.sort((a, b) => (a.state < b.state ? -1 : 1))).toEqual([
      { agent: 'Bob', state: 'queued', count: 1 },
      { agent: 'Bob', state: 'written', count: 1 },
    ])
  })

  it.each(['content', 'title', 'sender', 'digest'])(
    'never serves a message whose %s was changed in the database',
    async (column) => {
      const store = await fixture().open()
      await send(store)
      await send(store, { to: 'Cleo' })
      await fixture().tamper(`UPDATE messages SET ${column} = ${column} || '!' WHERE seq = 1`)
      const damaged = { code: 'STORE_CORRUPT', message: expect.stringContaining('msg_1') }
      await expect(findMail(store, 1)).rejects.toMatchObject(damaged)
      await expect(readMailbox(store, 'Bob', 'all')).rejects.toMatchObject(damaged)
      const [claimed] = await Promise.all([claim(store), send(store, { to: 'Cleo' })])
      expect(claimed).toEqual([])
      expect(
        await store.all(`SELECT text FROM audit WHERE type = 'delivery.failed' AND subject = 'Bob'`),
      ).toEqual([{ text: 'msg_1 is failed: its bytes changed on disk' }])
      expect(await readMailbox(store, 'Cleo', 'all')).toHaveLength(2)
      expect(await store.check()).toEqual(['msg_1 was changed after it was stored'])
    },
  )

  it('detects a delivery that was lost or changed in the database', async () => {
    const store = await fixture().open()
    for (let count = 0; count < 3; count++) await send(store)
    expect(await store.check()).toEqual([])
    await fixture().tamper(`DELETE FROM deliveries WHERE message = 1`)
    await fixture().tamper(`UPDATE deliveries SET state = 'delivered' WHERE message = 2`)
    await fixture().tamper(`UPDATE deliveries SET priority = 3 WHERE message = 3`)
    expect(await store.check()).toEqual([
      'msg_1 has lost its delivery',
      'msg_2 has a damaged delivery',
      'msg_3 has a damaged delivery',
    ])
    await expect(findMail(store, 2)).rejects.toMatchObject({ code: 'STORE_CORRUPT' })
  })
}
