import { spawnSync } from 'node:child_process'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { registerAgent } from '../../../src/agents/store.ts'
import { findReceipt, storeReceipt } from '../../../src/commands/idempotency.ts'
import { claimDeliveries } from '../../../src/messages/delivery-states.ts'
import { askPeople, decideHumanRequest } from '../../../src/people/people.ts'
import { takeLease } from '../../../src/store/daemons.ts'
import { openPostgresStore } from '../../../src/store/postgres/open.ts'
import { MIGRATIONS } from '../../../src/store/schema/migrations.ts'
import type { SqlValue, Store, Tx } from '../../../src/store/store.ts'
import { setTimer, takeDue } from '../../../src/store/timers.ts'
import { startPostgres } from '../../fakes/postgres-server.ts'
import { createFixture, START, type StoreFixture, send, verifyAudit } from '../store-fixture.ts'

const server = await startPostgres()
afterAll(() => server.stop())

let fixture: StoreFixture
beforeEach(async () => {
  const url = await server.createSchema()
  fixture = createFixture((options) => openPostgresStore(url, options), {
    tamper: async (sql) => void (await server.query(sql, url)),
    clear: async () => {},
  })
})
afterEach(() => fixture.clear())

const eastAndWest = async () =>
  [await fixture.open({ daemon: 'east' }), await fixture.open({ daemon: 'west' })] as const

/** A barrier: its promises resolve once `size` callers wait. */
function meeting(size: number): () => Promise<void> {
  let waiting = 0
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return async () => {
    if (++waiting === size) open()
    await opened
  }
}

describe('daemons that share a database', () => {
  it('can all start at once on an empty database', async () => {
    const names = ['a', 'b', 'c', 'd']
    const stores = await Promise.all(names.map((daemon) => fixture.open({ daemon })))
    for (const store of stores) await send(store)
    expect(await stores[0]!.all('SELECT seq FROM messages')).toHaveLength(4)
  })

  it('keep a newer version from migrating the schema until they have stopped', async () => {
    const [east] = await eastAndWest()
    await fixture.tamper(`UPDATE meta SET value = '${MIGRATIONS.length - 1}' WHERE key = 'schema_version'`)
    await expect(fixture.open({ daemon: 'north' })).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining('east, west'),
      hint: expect.stringContaining('Stop all daemons'),
    })
    // The running daemons still work with the unchanged schema.
    expect(await send(east)).toBe(1)
  })

  it('with one name: only one of several that start at once gets the name', async () => {
    const starts = await Promise.allSettled(Array.from({ length: 5 }, () => fixture.open()))
    const refused = starts.filter((start) => start.status === 'rejected')
    expect(refused).toHaveLength(4)
    for (const { reason } of refused) expect(reason).toMatchObject({ code: 'STORE_LOCKED' })
  })

  it('with one name: one of two that see the name free gets it', async () => {
    const stores = await eastAndWest()
    const meet = meeting(2)
    const identity = { daemon: 'south', address: '', pid: 1, host: 'testhost', leaseMs: 1000 }
    const starts = await Promise.allSettled(
      stores.map((store) =>
        store.write(async (tx) => {
          const get: Tx['get'] = async <Row>(sql: string, params?: readonly SqlValue[]) => {
            const row = await tx.get<Row>(sql, params)
            if (sql.startsWith('SELECT')) await meet()
            return row
          }
          return await takeLease({ ...tx, get }, identity, false)
        }),
      ),
    )
    expect(starts.filter((start) => start.status === 'fulfilled')).toMatchObject([{ value: { epoch: 1 } }])
    expect(starts.filter((start) => start.status === 'rejected')).toMatchObject([
      { reason: { code: 'STORE_LOCKED', message: expect.stringContaining('process 1 on testhost') } },
    ])
  })

  it('have a chain each', async () => {
    const [east, west] = await eastAndWest()
    await Promise.all([send(east), send(west), send(east), send(west), send(east)])
    expect(await verifyAudit(east, 'east')).toMatchObject({ ok: true, count: 3 })
    expect(await verifyAudit(east, 'west')).toMatchObject({ ok: true, count: 2 })
  })

  it('assign keys in commit order, so that a reader who continues from a key misses none', async () => {
    const [east, west] = await eastAndWest()
    const reader = await fixture.open({ daemon: 'reader' })
    let writing = true
    const seen: number[] = []
    const reading = (async () => {
      for (let last = false; !last; ) {
        last = !writing
        const rows = await reader.all<{ seq: number }>(
          'SELECT seq FROM messages WHERE seq > ? ORDER BY seq',
          [seen.at(-1) ?? 0],
        )
        seen.push(...rows.map((row) => row.seq))
      }
    })()
    const burst = async (store: Store) => {
      for (let round = 0; round < 25; round++) await Promise.all([send(store), send(store), send(store)])
    }
    await Promise.all([burst(east), burst(west)])
    writing = false
    await reading
    expect(seen).toEqual(Array.from({ length: 150 }, (_, index) => index + 1))
  })

  it('keep the order of messages between two agents, whichever daemon accepts the next one', async () => {
    const stores = await eastAndWest()
    const keys: number[] = []
    for (let count = 0; count < 20; count++) keys.push(await send(stores[count % 2]!))
    expect(keys).toEqual([...keys].sort((a, b) => a - b))
  })

  it('decide a human request once', async () => {
    const stores = await eastAndWest()
    const { key: id } = await stores[0].write((tx) =>
      askPeople(tx, {
        kind: 'approval',
        purpose: 'command',
        asker: 'Ada',
        question: '?',
        reason: '',
      }),
    )
    const meet = meeting(2)
    const verdicts = await Promise.all(
      stores.map((store) =>
        store.write(async (tx) => {
          await meet()
          return await decideHumanRequest(tx, id, { state: 'approved', by: store.daemon, comment: null })
        }),
      ),
    )
    expect(verdicts.filter((verdict) => verdict)).toHaveLength(1)
  })

  it('take each due timer and each message once, without waiting for each other', async () => {
    const stores = await eastAndWest()
    await stores[0].write(async (tx) => {
      for (let ref = 0; ref < 10; ref++) setTimer(tx, 'k', String(ref), START)
    })
    for (let count = 0; count < 10; count++) await send(stores[0])
    const meet = meeting(2)
    const claim = { agent: 'Bob', until: START + 1, evidence: 'poll', limit: 6, maxBytes: 9999 }
    const taken = await Promise.all(
      stores.map((store) =>
        store.write(async (tx) => {
          const timers: string[] = []
          for (let due = await takeDue(tx); due !== undefined; due = await takeDue(tx)) {
            timers.push(due.ref)
            if (timers.length === 6) break
          }
          const mails = await claimDeliveries(tx, claim)
          // Both hold their rows now, so neither waited for the other's transaction.
          await meet()
          return [...timers, ...mails.map((mail) => mail.id)]
        }),
      ),
    )
    expect(taken.flat()).toHaveLength(20)
    expect(new Set(taken.flat()).size).toBe(20)
  })

  it('let a command with one idempotency key take effect once, wherever it arrives (C25)', async () => {
    const stores = await eastAndWest()
    const meet = meeting(2)
    const command = async (tx: Tx, daemon: string) => {
      const known = await findReceipt(tx, 'Ada', 'key')
      if (known !== undefined) return known.receipt
      await meet()
      await storeReceipt(tx, 'Ada', 'key', { digest: 'd', receipt: daemon })
      return daemon
    }
    const receipts = await Promise.all(stores.map((store) => store.write((tx) => command(tx, store.daemon))))
    expect(new Set(receipts).size).toBe(1)
  })

  it('recover from a deadlock', async () => {
    const stores = await eastAndWest()
    await stores[0].write(async (tx) => {
      registerAgent(tx, 'Ada', 'unknown')
      registerAgent(tx, 'Bob', 'unknown')
    })
    const meet = meeting(2)
    const touch = (tx: Tx, agent: string) =>
      tx.all('UPDATE agents SET paused = paused + 1 WHERE name = ? RETURNING name', [agent])
    await Promise.all(
      stores.map((store, index) =>
        store.write(async (tx) => {
          const [first, second] = index === 0 ? ['Ada', 'Bob'] : ['Bob', 'Ada']
          await touch(tx, first!)
          await meet()
          await touch(tx, second!)
        }),
      ),
    )
    expect(await stores[0].all('SELECT paused FROM agents')).toEqual([{ paused: 2 }, { paused: 2 }])
  })
})

describe('a successor', () => {
  it('takes over when the lease expires, and its predecessor can no longer write', async () => {
    let now = START
    const clock = { now: () => now, leaseMs: 60_000 }
    const old = await fixture.open(clock)
    await send(old)
    await expect(fixture.open(clock)).rejects.toMatchObject({ code: 'STORE_LOCKED' })
    now += 60_000
    const next = await fixture.open(clock)
    await expect(send(old)).rejects.toMatchObject({ code: 'FENCED' })
    expect(await send(next)).toBe(2)
    await old.close()
    // Closing the old store doesn't release the lease of the new one.
    await expect(fixture.open(clock)).rejects.toMatchObject({ code: 'STORE_LOCKED' })
    expect(await verifyAudit(next)).toMatchObject({ ok: true, count: 2 })
  })

  it('waits for the open transaction and continues after it', async () => {
    let now = START
    const clock = { now: () => now }
    const old = await fixture.open(clock)
    now += 60_000
    let taken = false
    let opening: Promise<Store> | undefined
    await old.write(async (tx) => {
      opening = fixture.open(clock).then((store) => {
        taken = true
        return store
      })
      await server.query('SELECT pg_sleep(0.2)')
      expect(taken).toBe(false)
      tx.audit({ type: 'mark.set', class: 'internal', actor: 'Ada', text: 'the last word' })
    })
    const next = await opening!
    await send(next)
    expect(await verifyAudit(next)).toMatchObject({ ok: true, count: 2 })
    await expect(send(old)).rejects.toMatchObject({ code: 'FENCED' })
  })

  it('does not wait forever for a daemon that hangs in a transaction', async () => {
    let now = START
    const clock = { now: () => now, leaseMs: 300 }
    const old = await fixture.open(clock)
    now += 300
    const hanging = old.write(async (tx) => {
      tx.run('DELETE FROM timers')
      await server.query('SELECT pg_sleep(0.8)')
      await tx.get('SELECT 1 AS one')
    })
    hanging.catch(() => {})
    const next = await fixture.open(clock)
    await expect(hanging).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect(send(old)).rejects.toMatchObject({ code: 'FENCED' })
    expect(await send(next)).toBe(1)
  })

  it('does not wait for a daemon on the same host whose process has ended', async () => {
    const { pid } = spawnSync('true')
    await fixture.open({ pid })
    await expect(fixture.open({ host: 'elsewhere' })).rejects.toMatchObject({ code: 'STORE_LOCKED' })
    const next = await fixture.open()
    expect(await send(next)).toBe(1)
  })
})
