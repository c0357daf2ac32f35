import { expect, it } from 'vitest'
import { registerAgent } from '../../../src/agents/store.ts'
import { isDaemonUp } from '../../../src/store/daemons.ts'
import { type CurrentFixture, START, send, verifyAudit } from '../store-fixture.ts'

export function daemonCases(fixture: CurrentFixture) {
  it('refuses a second daemon and names the one that holds the store', async () => {
    const first = await fixture().open({
      pid: process.pid,
      host: 'workstation',
      address: 'http://127.0.0.1:4571',
    })
    const second = fixture().open({ pid: process.pid, host: 'laptop' })
    await expect(second).rejects.toMatchObject({
      code: 'STORE_LOCKED',
      message: expect.stringContaining(`process ${process.pid} on workstation, at http://127.0.0.1:4571`),
      hint: expect.any(String),
    })
    expect(await send(first)).toBe(1)
    await first.close()
    const third = await fixture().open({ host: 'laptop' })
    expect(await send(third)).toBe(2)
  })

  it('takes a new epoch at each start, and tells whether a daemon is up or has restarted', async () => {
    const first = await fixture().open({ leaseMs: 5000 })
    expect(await isDaemonUp(first, 'main', START + 4999, first.epoch)).toBe(true)
    expect(await isDaemonUp(first, 'main', START + 5000)).toBe(false)
    expect(await isDaemonUp(first, 'other', START)).toBe(false)
    await first.close()
    const next = await fixture().open({ daemon: 'next' })
    expect(await isDaemonUp(next, 'main', START)).toBe(false)
    await next.close()
    const again = await fixture().open()
    expect(await isDaemonUp(again, 'main', START)).toBe(true)
    expect(await isDaemonUp(again, 'main', START, first.epoch)).toBe(false)
    expect(again.epoch).toBe(first.epoch + 1)
  })

  it('refuses every write of a daemon that was replaced and changes nothing', async () => {
    const store = await fixture().open()
    await send(store)
    await fixture().tamper(`UPDATE daemons SET epoch = epoch + 1 WHERE name = 'main'`)
    const effects: string[] = []
    const attempts = await Promise.allSettled([
      send(store),
      store.write(async (tx) => {
        tx.afterCommit(() => effects.push('ran'))
        registerAgent(tx, 'Ada', 'unknown')
      }),
    ])
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ status: 'rejected', reason: { code: 'FENCED' } })
    }
    expect(effects).toEqual([])
    expect(await store.all('SELECT seq FROM messages')).toEqual([{ seq: 1 }])
    expect(await store.all('SELECT name FROM agents')).toEqual([])
    expect(await verifyAudit(store)).toMatchObject({ ok: true, count: 1 })
  })
}
