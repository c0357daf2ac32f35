import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseSince } from '../../src/audit/since.ts'

const now = new Date('2026-03-01T12:00:00.000Z')

describe('parseSince', () => {
  it.each([
    ['45s', '2026-03-01T11:59:15.000Z'],
    ['10m', '2026-03-01T11:50:00.000Z'],
    ['2h', '2026-03-01T10:00:00.000Z'],
    ['1d', '2026-02-28T12:00:00.000Z'],
    ['1w', '2026-02-22T12:00:00.000Z'],
    ['1h30m', '2026-03-01T10:30:00.000Z'],
    [' 0s ', '2026-03-01T12:00:00.000Z'],
    ['2026-02-01', '2026-02-01T00:00:00.000Z'],
    ['2026-02-01T08:30', '2026-02-01T08:30:00.000Z'],
    ['2026-02-01 08:30:05', '2026-02-01T08:30:05.000Z'],
    ['2026-02-01T08:30:05.250Z', '2026-02-01T08:30:05.250Z'],
    ['2026-02-01T08:30:00+02:00', '2026-02-01T06:30:00.000Z'],
  ])('reads %s', (text, expected) => {
    expect(parseSince(text, now)?.toISOString()).toBe(expected)
  })

  const refused = '10 m -10m 1.5h 10y yesterday 2026 2026-13-01 2026-02-31 2026-02-01T25:00'.split(' ')
  it.each(['', '10 m', ...refused])('refuses %j', (text) => {
    expect(parseSince(text, now)).toBeUndefined()
  })

  it('returns a valid date or undefined, whatever the text', () => {
    const texts = fc.oneof(fc.string(), fc.stringMatching(/^(\d{1,12}[smhdw]){1,3}$/))
    fc.assert(
      fc.property(texts, (text) => {
        expect(parseSince(text, now)?.getTime()).not.toBeNaN()
      }),
    )
  })
})
