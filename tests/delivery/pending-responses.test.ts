import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPendingResponses } from '../../src/delivery/listener.ts'

const confirmation = (block: string) => ({ block, wakes: false })
const awaited = (block: string) => ({ block, wakes: true })

async function isDone(promise: Promise<void>): Promise<boolean> {
  return await Promise.race([promise.then(() => true), new Promise<false>((no) => setImmediate(no, false))])
}

describe('pending responses', () => {
  it('are taken once, in order', () => {
    const answers = createPendingResponses()
    answers.add(confirmation('one'))
    void answers.add(awaited('two'))
    expect(answers.areAwaited()).toBe(true)
    expect(answers.take().blocks).toEqual(['one', 'two'])
    expect(answers.take().blocks).toEqual([])
    expect(answers.areAwaited()).toBe(false)
  })

  it('include at most twenty confirmations and the number of earlier ones', () => {
    const answers = createPendingResponses()
    for (let number = 1; number <= 57; number++) answers.add(confirmation(`done ${number}`))
    const { blocks } = answers.take()
    expect(blocks).toHaveLength(21)
    expect(blocks[0]).toContain('37 more commands')
    expect(blocks.slice(1)).toEqual(Array.from({ length: 20 }, (_, index) => `done ${38 + index}`))
  })

  it('are still counted when they are put back and more are added', () => {
    const answers = createPendingResponses()
    for (let number = 1; number <= 30; number++) answers.add(confirmation('a'))
    answers.take().putBack()
    for (let number = 1; number <= 30; number++) answers.add(confirmation('b'))
    const { blocks } = answers.take()
    expect(blocks[0]).toContain('40 more commands')
    expect(blocks.slice(1)).toEqual(Array.from({ length: 20 }, () => 'b'))
  })

  it('that the agent awaits are not lost in a flood: those beyond a hundred are counted, and resolved with the rest', async () => {
    const answers = createPendingResponses()
    const arrived = Array.from({ length: 130 }, (_, index) => answers.add(awaited(`no ${index}`)))
    const given = answers.take()
    expect(given.blocks).toHaveLength(101)
    expect(given.blocks.at(-1)).toMatch(/30 more commands.*send the command again/)
    expect(await isDone(arrived[129]!)).toBe(false)
    given.arrived()
    await Promise.all(arrived)
    expect(answers.areAwaited()).toBe(false)
  })

  it('fill only a part of a turn; the rest follows in the next one', () => {
    const answers = createPendingResponses()
    for (const letter of ['a', 'b', 'c']) void answers.add(awaited(letter.repeat(40_000)))
    expect(answers.take().blocks).toHaveLength(1)
    expect(answers.areAwaited()).toBe(true)
    expect(answers.take().blocks).toHaveLength(1)
    expect(answers.take().blocks).toHaveLength(1)
    expect(answers.areAwaited()).toBe(false)
  })

  it('without evidence are handed over three times, then block nothing', async () => {
    const answers = createPendingResponses()
    const arrived = answers.add(awaited('what?'))
    for (let turn = 1; turn <= 3; turn++) {
      expect(await isDone(arrived)).toBe(false)
      const given = answers.take()
      expect(given.blocks).toEqual(['what?'])
      given.unknown()
    }
    expect(await isDone(arrived)).toBe(true)
    expect(answers.take().blocks).toEqual([])
  })

  it('are each shown or counted, however the turns end (property)', () => {
    const step = fc.oneof(
      fc.record({
        do: fc.constant('add' as const),
        wakes: fc.boolean(),
        times: fc.integer({ min: 1, max: 150 }),
      }),
      fc.record({ do: fc.constantFrom('give', 'put back') }),
    )
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
        const answers = createPendingResponses()
        let added = 0
        let told = 0
        const tellAll = (blocks: readonly string[]) => {
          for (const block of blocks) told += Number(/(\d+) more command/.exec(block)?.[1] ?? 1)
        }
        for (const one of steps) {
          if ('times' in one) {
            for (let time = 0; time < one.times; time++) void answers.add({ block: 'x', wakes: one.wakes })
            added += one.times
          } else {
            const given = answers.take()
            if (one.do === 'put back') given.putBack()
            else tellAll(given.blocks)
          }
        }
        for (let given = answers.take(); given.blocks.length > 0; given = answers.take())
          tellAll(given.blocks)
        expect(told).toBe(added)
      }),
      { numRuns: 200 },
    )
  })
})
