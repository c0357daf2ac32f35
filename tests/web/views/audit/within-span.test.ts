import { describe, expect, it } from 'vitest'
import { withinSpan } from '../../../../web/src/views/audit/within-span.ts'

describe('entries within a time span', () => {
  const now = Date.UTC(2030, 0, 1)
  const ago = (ms: number) => ({ at: new Date(now - ms).toISOString() })

  it('drop out when they get older than the span; a date keeps all', () => {
    const entries = [ago(0), ago(599_000), ago(601_000), ago(5_400_000)]
    expect(withinSpan(entries, '10m', now)).toEqual(entries.slice(0, 2))
    expect(withinSpan(entries, '10m', now + 2000)).toEqual(entries.slice(0, 1))
    expect(withinSpan(entries, '1h30m', now)).toEqual(entries)
    expect(withinSpan(entries, '2029-12-31', now)).toEqual(entries)
    expect(withinSpan(entries, '', now)).toBe(entries)
    expect(withinSpan(undefined, '10m', now)).toBeUndefined()
  })
})
