import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../src/api/request-input.ts'
import { AppError } from '../../src/base/errors.ts'

/** The place that the message names, as an offset. */
function placeOf(text: string): number | undefined {
  try {
    parseJson(text)
    return undefined
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    const [, line, column] = /line (\d+), column (\d+)/.exec(error.message)!
    const before = text.split('\n').slice(0, Number(line) - 1)
    return before.reduce((sum, one) => sum + one.length + 1, 0) + Number(column) - 1
  }
}

describe('parseJson', () => {
  it('reads whatever JSON.parse reads', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text))
      }),
    )
  })

  it('names the first invalid character', () => {
    // A control character is allowed nowhere in JSON, so that the place where it was put is the fault.
    fc.assert(
      fc.property(fc.json(), fc.nat(), (text, at) => {
        const offset = at % (text.length + 1)
        const broken = `${text.slice(0, offset)}\u0001${text.slice(offset)}`
        // Inside a word, a number or an escape the fault is where that begins.
        const place = placeOf(broken)!
        expect(place).toBeLessThanOrEqual(offset)
        expect(broken.slice(place, offset)).toMatch(
          /^(?:[a-z]*|-?\d*\.?\d*(?:[eE][+-]?)?|\\(?:u[0-9a-fA-F]*)?)$/,
        )
      }),
    )
  })

  it('names the end of a truncated text', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('a', 'é', '\n')), fc.nat(), (words, at) => {
        const text = JSON.stringify({ words, more: { deep: [1, [true]] } })
        const cut = text.slice(0, at % (text.length - 1))
        const place = placeOf(cut)!
        expect(cut.length - place).toBeLessThanOrEqual(5)
      }),
    )
  })

  it('takes time proportional to the length of the text, whatever its shape', () => {
    for (const part of ['[', '{"a":', '"\\', ' ', '1,']) {
      const start = performance.now()
      placeOf(`[${part.repeat(500_000)}`)
      expect(performance.now() - start).toBeLessThan(2000)
    }
  })
})
