import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AuditEntry } from '../../../src/audit/entry.ts'
import { findReceipt, storeReceipt } from '../../../src/commands/idempotency.ts'
import { insertMessage, readMailbox } from '../../../src/messages/messages.ts'
import { openPostgresStore } from '../../../src/store/postgres/open.ts'
import { openSession, readAddress } from '../../../src/store/postgres/session.ts'
import type { Store } from '../../../src/store/store.ts'
import { startPostgres } from '../../fakes/postgres-server.ts'
import { startTcpProxy } from '../../fakes/tcp-proxy.ts'
import { send, storeOptions, verifyAudit } from '../store-fixture.ts'

const server = await startPostgres({ durable: true })
const proxy = await startTcpProxy(server.port)
afterAll(async () => {
  await proxy.close()
  await server.stop()
})

let url: string
let store: Store
beforeEach(async () => {
  url = (await server.createSchema()).replace(`:${server.port}`, `:${proxy.port}`)
  store = await openPostgresStore(url, storeOptions({}))
})
afterEach(() => store.close())

const killBackends = () =>
  server.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'orchub%'`)

const AWAY = { code: 'STORE_UNAVAILABLE', hint: expect.any(String) }

/** Retries with the same idempotency key until there is an answer. Returns the key of the message. */
async function sendUntilAccepted(content: string): Promise<number> {
  const attempt = () =>
    store.write(async (tx) => {
      const known = await findReceipt(tx, 'Ada', content)
      if (known !== undefined) return Number(known.receipt)
      const message = { from: 'Ada', to: 'Bob', title: 't', content, priority: 'normal', hop: 0 } as const
      const { key } = await insertMessage(tx, message)
      await storeReceipt(tx, 'Ada', content, { digest: content, receipt: String(key) })
      tx.audit({ type: 'message.accepted', class: 'internal', actor: 'Ada', subject: 'Bob', text: content })
      return key
    })
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      expect(error).toMatchObject(AWAY)
      await sleep(10)
    }
  }
}

describe('a lost connection', () => {
  it('is replaced unnoticed if it was idle', async () => {
    await send(store)
    await killBackends()
    await sleep(100)
    expect(await readMailbox(store, 'Bob', 'all')).toHaveLength(1)
    expect(await send(store)).toBe(2)
  })

  it('that is still unnoticed does not fail a read', async () => {
    await send(store)
    proxy.cut()
    expect(await readMailbox(store, 'Bob', 'all')).toHaveLength(1)
    const rows: unknown[] = []
    for await (const row of store.stream('SELECT seq FROM messages')) rows.push(row)
    expect(rows).toHaveLength(1)
  })

  it('fails the running unit of work even if it only waits afterwards', async () => {
    const waiting = store.write(async () => {
      await killBackends()
      await sleep(50)
    })
    await expect(waiting).rejects.toMatchObject(AWAY)
  })

  it.each(['reads', 'only writes'])('fails the running batch, also one that %s afterwards', async (then) => {
    const outcomes = await Promise.allSettled([
      send(store),
      store.write(async (tx) => {
        await insertMessage(tx, { from: 'A', to: 'B', title: '', content: '', priority: 'low', hop: 0 })
        await killBackends()
        if (then === 'reads') await tx.get('SELECT 1 AS one')
        else tx.run('DELETE FROM timers')
      }),
      send(store),
    ])
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: AWAY })
    expect(await store.all('SELECT seq FROM messages')).toEqual([])
    expect(await send(store)).toBeGreaterThan(0)
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 1 })
  })

  it('during a commit reports an unknown outcome and resolves it afterwards', async () => {
    const heard: AuditEntry[] = []
    const effects: string[] = []
    store.onCommit((entries) => heard.push(...entries))
    await send(store)
    const inFlight = store.write(async (tx) => {
      tx.audit({ type: 'mark.set', class: 'internal', actor: 'Ada', text: 'did it happen?' })
      tx.afterCommit(() => effects.push('ran'))
      proxy.mute('answers')
    })
    inFlight.catch(() => {})
    const committed = async () => {
      const rows = await server.query<{ count: string }>('SELECT count(*) FROM audit', direct())
      return rows[0]!.count === '2'
    }
    while (!(await committed())) await sleep(5)
    proxy.cut()
    await expect(inFlight).rejects.toMatchObject({
      ...AWAY,
      hint: expect.stringContaining('idempotency key'),
    })
    expect(effects).toEqual([])

    await send(store)
    expect(effects).toEqual(['ran'])
    expect(heard.map((entry) => entry.seq)).toEqual([1, 2, 3])
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 3 })
  })

  it('before the commit arrives stores nothing', async () => {
    const heard: AuditEntry[] = []
    const effects: string[] = []
    store.onCommit((entries) => heard.push(...entries))
    const inFlight = store.write(async (tx) => {
      tx.audit({ type: 'mark.set', class: 'internal', actor: 'Ada', text: 'it did not' })
      tx.afterCommit(() => effects.push('ran'))
      proxy.mute('all')
      setTimeout(() => proxy.cut(), 50)
    })
    await expect(inFlight).rejects.toMatchObject(AWAY)
    await send(store)
    expect(effects).toEqual([])
    expect(heard.map((entry) => entry.text)).toEqual(['message 1'])
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 1 })
  })

  it('is never taken for the end of a stream', async () => {
    await store.write(async (tx) => {
      for (let ref = 0; ref < 500; ref++) tx.run(`INSERT INTO timers VALUES ('k', ?, 1)`, [String(ref)])
    })
    let rows = 0
    const reading = async () => {
      for await (const _ of store.stream('SELECT * FROM timers')) {
        rows++
        if (rows === 10) await killBackends()
      }
    }
    await expect(reading()).rejects.toMatchObject(AWAY)
    expect(rows).toBeLessThan(500)
  })

  it('is detected when the network drops all packets', async () => {
    const session = await openSession(readAddress(url), { applicationName: 'orchub', silenceMs: 200 })
    expect(await session.query('SELECT 1 AS one')).toEqual([{ one: 1 }])
    proxy.mute('all')
    const silent = [session.query('SELECT 2'), session.query('SELECT $1::text', ['x'])]
    for (const query of silent) await expect(query).rejects.toThrow('does not answer')
    expect(session.isLost()).toBe(true)
    await expect(session.query('SELECT 3')).rejects.toThrow('does not answer')
    await session.end()
    proxy.cut()
  })

  it('over and over leaves every accepted message stored once, in order (C25)', async () => {
    const keys: number[] = []
    let kills = 0
    for (let round = 0; round < 12; round++) {
      const contents = Array.from({ length: 40 }, (_, index) => `${round}/${index}`)
      const accepted = Promise.all(contents.map(sendUntilAccepted))
      // A little later in each round, to interrupt every part of a batch.
      await sleep(round * 3)
      kills += (await killBackends()).length
      keys.push(...(await accepted))
    }
    expect(kills).toBeGreaterThan(10)
    const mails = await readMailbox(store, 'Bob', 'all')
    expect(mails).toHaveLength(480)
    expect(new Set(mails.map((mail) => mail.content)).size).toBe(480)
    expect(mails.map((mail) => mail.id)).toEqual([...keys].sort((a, b) => a - b).map((key) => `msg_${key}`))
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 480 })
  })
})

describe('a server that goes away', () => {
  it('or closes connections right after accepting them is not waited for', async () => {
    const rude = createServer((socket) => socket.end()).listen(0, '127.0.0.1')
    await once(rude, 'listening')
    const { port } = rude.address() as AddressInfo
    await expect(
      openPostgresStore(`postgres://a:b@127.0.0.1:${port}/c`, storeOptions({})),
    ).rejects.toMatchObject(AWAY)
    rude.close()
  })

  it.each(['restart', 'crash'] as const)('loses no accepted message (%s)', async (how) => {
    const accepted = Promise.all(Array.from({ length: 300 }, (_, index) => sendUntilAccepted(`m${index}`)))
    await server.restart(how)
    expect(await accepted).toHaveLength(300)
    expect(await readMailbox(store, 'Bob', 'all')).toHaveLength(300)
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 300 })
  })

  it('makes reads and writes fail at once, and the store can still be closed', async () => {
    const unreachable = await startTcpProxy(server.port)
    const lonely = await openPostgresStore(
      (await server.createSchema()).replace(`:${server.port}`, `:${unreachable.port}`),
      storeOptions({}),
    )
    await unreachable.close()
    await expect(send(lonely)).rejects.toMatchObject(AWAY)
    await expect(readMailbox(lonely, 'Bob', 'all')).rejects.toMatchObject(AWAY)
    expect(await lonely.check()).toContainEqual(expect.stringContaining('cannot be reached'))
    await lonely.close()
  })
})

function direct(): string {
  return url.replace(`:${proxy.port}`, `:${server.port}`)
}
