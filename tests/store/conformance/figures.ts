import { expect, it } from 'vitest'
import { addSpending } from '../../../src/agents/store.ts'
import { moveDeliveries } from '../../../src/messages/delivery-states.ts'
import { costByStep, countByStep, readingTimes } from '../../../src/messages/store.ts'
import { type CurrentFixture, START, send } from '../store-fixture.ts'

const span = { from: START, stepMs: 1000, steps: 5 }
const spent = { model: null, input: 1, output: 1, cacheRead: 0, cacheWrite: 0, task: null }

/** The queries behind the charts of the control room. */
export function figureCases(fixture: CurrentFixture) {
  it('counts entries by step and type within the span only', async () => {
    let now = START - 1
    const store = await fixture().open({ now: () => now })
    await send(store)
    now = START
    await send(store)
    await send(store)
    now = START + 4999
    await send(store)
    now = START + 5000
    await send(store)
    const counts = (await countByStep(store, span)).toSorted((one, other) => one.step - other.step)
    expect(counts).toEqual([
      { step: 0, type: 'message.accepted', count: 2 },
      { step: 4, type: 'message.accepted', count: 1 },
    ])
  })

  it('sums the cost of each step as numbers', async () => {
    let now = START + 1500
    const store = await fixture().open({ now: () => now })
    await store.write((tx) => addSpending(tx, 'Ada', { ...spent, key: 'a', cost: 0.25 }))
    await store.write((tx) => addSpending(tx, 'Bob', { ...spent, key: 'a', cost: 0.5 }))
    now = START + 2500
    await store.write((tx) => addSpending(tx, 'Ada', { ...spent, key: 'b', cost: undefined }))
    const costs = (await costByStep(store, span)).toSorted((one, other) => one.step - other.step)
    expect(costs).toEqual([
      { step: 1, cost: 0.75 },
      { step: 2, cost: 0 },
    ])
  })

  it('returns how long the newest messages took to be read, by the time of reading', async () => {
    let now = START
    const store = await fixture().open({ now: () => now })
    const first = await send(store)
    const second = await send(store)
    await send(store)
    now = START + 1200
    await store.write((tx) => moveDeliveries(tx, 'Bob', [first, second], 'read', 'acknowledged'))
    expect(await readingTimes(store, span, 10)).toEqual([
      { step: 1, ms: 1200 },
      { step: 1, ms: 1200 },
    ])
    expect(await readingTimes(store, span, 1)).toHaveLength(1)
  })
}
