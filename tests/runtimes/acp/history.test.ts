import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createHistory } from '../../../src/runtimes/acp/history.ts'

describe('a message delivered to an ACP agent (C25)', () => {
  it('is found in a replay, however it is cut', () => {
    const ids = fc.uniqueArray(fc.integer({ min: 1, max: 9_999_999 }), { minLength: 1, maxLength: 8 })
    fc.assert(
      fc.property(ids, fc.array(fc.integer({ min: 1, max: 40 })), (numbers, cuts) => {
        const history = createHistory('something')
        let rest = numbers
          .map((n) => `[ORCHUB MESSAGE msg_${n}]\nhi\n[END ORCHUB MESSAGE msg_${n}]`)
          .join('\n')
        for (const cut of cuts) {
          history.replay(rest.slice(0, cut))
          rest = rest.slice(cut)
        }
        history.replay(rest)
        history.replayed()
        for (const n of numbers) expect(history.locate(`msg_${n}`).at).toBe('submitted')
        expect(history.locate('msg_10000000').at).toBe('absent')
      }),
    )
  })

  it('is unknown without a replay, unless nothing was before', () => {
    expect(createHistory('something').locate('msg_1').at).toBe('unknown')
    expect(createHistory('nothing').locate('msg_1').at).toBe('absent')
  })

  it('is unknown once it was written, until the agent accepts or rejects it', () => {
    const history = createHistory('nothing')
    history.wrote(['msg_1', 'msg_2'])
    expect(history.locate('msg_1').at).toBe('unknown')
    history.settle(['msg_1'], true)
    history.settle(['msg_2'], false)
    expect(history.locate('msg_1').at).toBe('submitted')
    expect(history.locate('msg_2').at).toBe('absent')
  })

  it('is remembered within bounds, and never claimed absent once something was forgotten', () => {
    const history = createHistory('nothing')
    for (let n = 1; n <= 6000; n++) history.settle([`msg_${n}`], true)
    expect(history.locate('msg_6000').at).toBe('submitted')
    expect(history.locate('msg_1').at).toBe('unknown')
  })
})
