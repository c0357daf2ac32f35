import { describe, expect, it } from 'vitest'
import { brief, scan } from './commands.ts'
import { SPEC_TABLE } from './fixtures/spec-table.ts'

describe('the table of the specification (C5)', () => {
  it.each(SPEC_TABLE)('is followed for $input', ({ input, wanted, ignored = [] }) => {
    const found = scan(input)
    expect(found.map(brief)).toEqual(wanted)
    expect(found.flatMap((one) => (one.ok ? one.ignored : []))).toEqual(ignored)
  })
})
