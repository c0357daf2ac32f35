import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextHop, observe, type PingPong } from '../../src/rules/loop-breaker.ts'

const MINUTE = 60_000
const policy = { turns: 4, withinMs: 10 * MINUTE }

/** The verdicts on messages of one pair, one per second by default. */
function watch(senders: string, gapMs = 1000, limits = policy) {
  let state: PingPong | undefined
  return [...senders].map((from, index) => {
    const seen = observe(state, from, index * gapMs, limits)
    state = seen.state
    return seen
  })
}

it('counts hops along a chain of replies', () => {
  const first = { hop: nextHop(undefined) }
  const second = { hop: nextHop(first) }
  expect([first.hop, second.hop, nextHop(second)]).toEqual([0, 1, 2])
})

describe('the ping-pong detector', () => {
  it('parks the first message beyond the limit and all after it', () => {
    expect(watch('ABABAB').map((seen) => seen.verdict)).toEqual(['ok', 'ok', 'ok', 'ok', 'park', 'park'])
    expect(watch('ABAB').map((seen) => seen.turns)).toEqual([1, 2, 3, 4])
  })

  it('counts a run of messages in one direction as one turn', () => {
    expect(watch('AAAAABBBBBAAAB').at(-1)).toMatchObject({ turns: 4, verdict: 'ok' })
    expect(watch('AAABBBABA').at(-1)).toMatchObject({ turns: 5, verdict: 'park' })
  })

  it('forgets turns outside of the window', () => {
    expect(watch('ABABABABAB', 5 * MINUTE).every((seen) => seen.verdict === 'ok')).toBe(true)
    expect(watch('ABABABABAB', 2 * MINUTE).at(-1)?.verdict).toBe('park')
  })

  it('starts again after a person releases the pair', () => {
    expect(observe(undefined, 'A', 0, policy)).toMatchObject({ verdict: 'ok', turns: 1 })
  })

  it('recovers when the clock is set back', () => {
    const parked = watch('ABABAB').at(-1)!
    expect(observe(parked.state, 'A', -3_600_000, policy).verdict).toBe('ok')
  })

  const limits = fc.record({
    turns: fc.integer({ min: 2, max: 50 }),
    withinMs: fc.integer({ min: 1000, max: 1e7 }),
  })

  it('detects every strict alternation beyond the limit within the window', () => {
    fc.assert(
      fc.property(
        limits,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.string({ maxLength: 10 }),
        (limit, pace, before) => {
          const gap = Math.floor(((limit.withinMs - 1) / (limit.turns + 1)) * pace)
          const past = [...before].map((_, index) => (index % 3 === 0 ? 'A' : 'B')).join('')
          const strict = 'AB'.repeat(limit.turns).slice(0, limit.turns + 1)
          expect(watch(past + strict, gap, limit).at(-1)?.verdict).toBe('park')
        },
      ),
    )
  })

  it('never parks a stream in one direction', () => {
    fc.assert(
      fc.property(limits, fc.array(fc.nat(100_000), { maxLength: 200 }), (limit, gaps) => {
        let state: PingPong | undefined
        let now = 0
        for (const gap of gaps) {
          now += gap
          const seen = observe(state, 'A', now, limit)
          expect(seen).toMatchObject({ verdict: 'ok', turns: 1 })
          state = seen.state
        }
      }),
    )
  })

  it('never counts more turns than there were, and bounds its memory', () => {
    fc.assert(
      fc.property(
        limits,
        fc.array(fc.tuple(fc.constantFrom('A', 'B'), fc.nat(10_000)), { maxLength: 300 }),
        (limit, messages) => {
          let state: PingPong | undefined
          let now = 0
          let runs = 0
          let last: string | undefined
          for (const [from, gap] of messages) {
            now += gap
            if (from !== last) runs++
            last = from
            const seen = observe(state, from, now, limit)
            state = seen.state
            expect(seen.turns).toBeLessThanOrEqual(runs)
            expect(state.changes.length).toBeLessThanOrEqual(limit.turns)
          }
        },
      ),
    )
  })
})
