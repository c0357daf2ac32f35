import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { createTimers, setTimer, type TimerRow, type Timers } from '../../src/store/timers.ts'
import { clockedStore } from '../fakes/clocked-store.ts'
import { createSimulatedClock, type SimulatedClock } from '../fakes/simulated-clock.ts'
import { START, storeOptions } from './store-fixture.ts'

let folder: string
let store: Store
let clock: SimulatedClock
let timers: Timers
let errors: unknown[]
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'orchub-timers-'))
  clock = createSimulatedClock(START)
  const opened = await openSqliteStore(join(folder, 'orc.db'), storeOptions({ now: clock.now }))
  store = clockedStore(opened, clock)
  errors = []
  const log = { debug() {}, info() {}, warn() {}, error: (about: unknown) => void errors.push(about) }
  timers = createTimers(store, clock, log)
})
afterEach(async () => {
  timers.stop()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

const arm = (count: number, at = START) =>
  store.write(async (tx) => {
    for (let n = 0; n < count; n++) setTimer(tx, 'run', `task_${n}`, at + n)
  })
const left = () => store.all<TimerRow>('SELECT * FROM timers ORDER BY due_at')

describe('timers', () => {
  it('fire once each, in the order they are due, however many there are (C8)', async () => {
    await arm(1000, START - 5000)
    const fired: string[] = []
    timers.on('run', async (_, ref) => void fired.push(ref))
    await timers.start()
    await clock.advance(10)
    expect(fired).toEqual(Array.from({ length: 1000 }, (_, n) => `task_${n}`))
    expect(await left()).toEqual([])
  })

  it('of an unknown kind stay, because another version set them', async () => {
    await store.write(async (tx) => setTimer(tx, 'of_another_version', 'x', START))
    await timers.start()
    await clock.advance(10)
    expect(await left()).toMatchObject([{ kind: 'of_another_version', ref: 'x' }])
    expect((await left())[0]!.due_at).toBeGreaterThan(START)
  })

  it('fire although one of them fails, which is logged once and retried later', async () => {
    await arm(100, START - 5000)
    const fired = new Map<string, number>()
    let isBroken = true
    timers.on('run', async (tx, ref) => {
      if (isBroken && ref === 'task_40') throw new Error('broken')
      tx.afterCommit(() => fired.set(ref, (fired.get(ref) ?? 0) + 1))
    })
    await timers.start()
    await clock.advance(10)
    expect(fired.size).toBe(99)
    expect(new Set(fired.values())).toEqual(new Set([1]))
    expect(errors).toHaveLength(1)
    expect(await left()).toMatchObject([{ ref: 'task_40' }])
    isBroken = false
    await clock.advance(5 * 60_000)
    expect(fired.get('task_40')).toBe(1)
    expect(await left()).toEqual([])
  })

  it('do not fire early', async () => {
    await arm(3, START + 1000)
    const fired: string[] = []
    timers.on('run', async (_, ref) => void fired.push(ref))
    await timers.start()
    await clock.advance(999)
    expect(fired).toEqual([])
    await clock.advance(1)
    expect(fired).toEqual(['task_0'])
    await clock.advance(2)
    expect(fired).toEqual(['task_0', 'task_1', 'task_2'])
  })
})
