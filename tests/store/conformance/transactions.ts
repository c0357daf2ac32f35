import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import type { AuditEntry } from '../../../src/audit/entry.ts'
import { keepDelivery } from '../../../src/github/store.ts'
import { findMail } from '../../../src/messages/messages.ts'
import type { Store, Tx } from '../../../src/store/store.ts'
import { setTimer, type TimerRow } from '../../../src/store/timers.ts'
import { type CurrentFixture, START, send } from '../store-fixture.ts'

async function timers(store: Store): Promise<string[]> {
  const rows = await store.all<TimerRow>('SELECT * FROM timers ORDER BY ref')
  return rows.map((row) => row.ref)
}

async function mark(tx: Tx, ref: string) {
  setTimer(tx, 'mark', ref, START)
  tx.audit({ type: 'mark.set', class: 'internal', actor: 'orchestrator', text: ref })
}

/** Faults of a unit of work, in SQL and outside of it. */
const FAULTS: Record<string, (tx: Tx) => Promise<unknown> | unknown> = {
  'throws by itself': () => {
    throw new Error('by itself')
  },
  'inserts a key twice': async (tx) => {
    const insert = `INSERT INTO timers (kind, ref, due_at) VALUES ('twice', 'twice', ?)`
    tx.run(insert, [1])
    tx.run(insert, [2])
  },
  'leaves out what may not be null': (tx) =>
    tx.run(`INSERT INTO timers (kind, ref) VALUES (?, ?)`, ['k', 'r']),
  'reads with nonsense': (tx) => tx.get('SELECT nonsense'),
}

export function transactionCases(fixture: CurrentFixture) {
  it('stores a unit of work completely or not at all (C12)', async () => {
    const store = await fixture().open()
    const failing = store.write(async (tx) => {
      await mark(tx, 'half')
      throw new Error('on second thought')
    })
    await expect(failing).rejects.toThrow('on second thought')
    expect(await timers(store)).toEqual([])
    expect(await store.all('SELECT seq FROM audit')).toEqual([])
    await store.write((tx) => mark(tx, 'whole'))
    expect(await timers(store)).toEqual(['whole'])
    expect(await store.all('SELECT seq FROM audit')).toHaveLength(1)
  })

  it.each(Object.keys(FAULTS))(
    'fails only the unit of work that %s, while the others in its batch succeed',
    async (name) => {
      const store = await fixture().open()
      const outcomes = await Promise.allSettled([
        store.write((tx) => mark(tx, 'a')),
        store.write(async (tx) => {
          await mark(tx, 'bad')
          await FAULTS[name]!(tx)
        }),
        store.write((tx) => mark(tx, 'b')),
        store.write(async (tx) => {
          await tx.get('SELECT COUNT(*) AS count FROM timers')
          await mark(tx, 'c')
        }),
      ])
      expect(outcomes.map((outcome) => outcome.status)).toEqual([
        'fulfilled',
        'rejected',
        'fulfilled',
        'fulfilled',
      ])
      expect(await timers(store)).toEqual(['a', 'b', 'c'])
    },
  )

  it('commits units of work in the order they arrive, however many arrive at once', async () => {
    const store = await fixture().open()
    const keys = await Promise.all(Array.from({ length: 600 }, () => send(store)))
    expect(keys).toEqual(Array.from({ length: 600 }, (_, index) => index + 1))
  })

  it('commits a unit marked `first` before all queued ones', async () => {
    const store = await fixture().open()
    const order: string[] = []
    const waiting = Array.from({ length: 600 }, (_, index) => store.write(() => void order.push(`${index}`)))
    const ahead = store.write(() => void order.push('ahead'), 'first')
    await Promise.all([...waiting, ahead])
    expect(order[0]).toBe('ahead')
    expect(order.slice(1)).toEqual(Array.from({ length: 600 }, (_, index) => `${index}`))
  })

  it('batches units of work that arrive together into few commits', async () => {
    const store = await fixture().open()
    const commits: number[] = []
    store.onCommit((entries) => commits.push(entries.length))
    await Promise.all(Array.from({ length: 100 }, () => send(store)))
    expect(commits.reduce((sum, count) => sum + count, 0)).toBe(100)
    expect(commits.length).toBeLessThanOrEqual(5)
  })

  it('notifies watchers of every commit, also of one without entries, and of no failed one', async () => {
    const store = await fixture().open()
    let told = 0
    const stop = store.onWrite(() => {
      told += 1
    })
    const silently = (id: string) =>
      store.write((tx) => keepDelivery(tx, { id, event: 'ping', payload: '{}' }))
    await silently('one')
    expect(told).toBe(1)
    await send(store)
    expect(told).toBe(2)
    const failing = store.write(() => {
      throw new Error('not this one')
    })
    await expect(failing).rejects.toThrow('not this one')
    expect(told).toBe(2)
    stop()
    await silently('two')
    expect(told).toBe(2)
  })

  it('shows readers nothing before the commit and everything after it', async () => {
    const store = await fixture().open()
    const seen: string[][] = []
    await Promise.all([
      store.write(async (tx) => {
        await mark(tx, 'a')
        seen.push(await timers(store))
      }),
      store.write(async (tx) => {
        await mark(tx, 'b')
        seen.push(await timers(store))
      }),
    ])
    expect(seen).toEqual([[], []])
    expect(await timers(store)).toEqual(['a', 'b'])
  })

  it('lets a unit of work read its own writes and those of earlier units in its batch', async () => {
    const store = await fixture().open()
    const [key, found] = await Promise.all([
      send(store, { content: 'just written' }),
      store.write(async (tx) => (await findMail(tx, 1))?.content),
    ])
    expect([key, found]).toEqual([1, 'just written'])
  })

  it('runs effects once, after the commit, and only those of units that succeed', async () => {
    const store = await fixture().open()
    const effects: string[] = []
    const found: Promise<string[]>[] = []
    const work = (name: string, fails = false) =>
      store.write(async (tx) => {
        await mark(tx, name)
        tx.afterCommit(() => {
          effects.push(name)
          found.push(timers(store))
        })
        if (fails) throw new Error('failed')
      })
    await Promise.allSettled([work('a'), work('b', true), work('c')])
    expect(effects).toEqual(['a', 'c'])
    expect((await Promise.all(found)).map((refs) => refs[0])).toEqual(['a', 'a'])
  })

  it('keeps a commit whose effects or listeners throw', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      const store = await fixture().open()
      const heard: AuditEntry[] = []
      store.onCommit(() => {
        throw new Error('a bad listener')
      })
      store.onCommit((entries) => heard.push(...entries))
      const write = store.write(async (tx) => {
        await mark(tx, 'a')
        tx.afterCommit(() => {
          throw new Error('a bad effect')
        })
        return 'done'
      })
      expect(await write).toBe('done')
      expect(heard.map((entry) => entry.text)).toEqual(['a'])
      expect(warn).toHaveBeenCalledTimes(2)
      await store.write((tx) => mark(tx, 'b'))
      expect(await timers(store)).toEqual(['a', 'b'])
    } finally {
      warn.mockRestore()
    }
  })

  it('gives transactions times that never decrease', async () => {
    const times = [START, START + 5, START + 3, START + 7]
    const store = await fixture().open({ now: () => times.shift() ?? START })
    const seen: number[] = []
    for (let round = 0; round < 3; round++) seen.push(await store.write((tx) => tx.now))
    expect(seen).toEqual([START + 5, START + 5, START + 7])
  })

  it('assigns unique, growing keys, also across failed units and a reopening', async () => {
    const first = await fixture().open()
    const inOneWork = await first.write(async (tx) => {
      const pair = [tx.nextKey('msg'), tx.nextKey('msg'), tx.nextKey('req')]
      return await Promise.all(pair)
    })
    expect(inOneWork).toEqual([1, 2, 1])
    let lost = 0
    const failing = first.write(async (tx) => {
      lost = await tx.nextKey('msg')
      throw new Error('lost')
    })
    await expect(failing).rejects.toThrow('lost')
    const kept = await send(first)
    expect(kept).toBeGreaterThan(lost)
    await first.close()
    const second = await fixture().open()
    expect(await send(second)).toBeGreaterThan(kept)
  })

  it('yields to the event loop between large batches', async () => {
    const store = await fixture().open()
    let turns = 0
    let writing = true
    const counting = (async () => {
      for (; writing; turns++) await nextTurn()
    })()
    await Promise.all(Array.from({ length: 1000 }, () => store.write((tx) => setTimer(tx, 'k', 'r', START))))
    writing = false
    await counting
    expect(turns).toBeGreaterThan(2)
  })
}
