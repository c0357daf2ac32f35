import { beforeAll, describe, expect, it } from 'vitest'
import { openRedactor } from '../../src/audit/redact.ts'
import { beginning, type Redact, redactedExcerpt } from '../../src/base/excerpt.ts'

const TOKEN = `ghp_${'0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uV1wX'}`
let redact: Redact
beforeAll(async () => {
  redact = (await openRedactor()).redact
})

describe('an excerpt of a text (C12)', () => {
  it('contains no part of a secret that the cut splits', () => {
    const text = `${'x'.repeat(70)} ${TOKEN} ${'y'.repeat(500)}`
    expect(redactedExcerpt(redact, text, 80)).toBe(`${'x'.repeat(70)} [redacted`)
  })

  it('contains no part of a secret at the end of the window, even if redactions shorten the text', () => {
    const many = `${`${TOKEN} `.repeat(1000)}`
    for (let most = 60; most < 110; most++) {
      expect(redactedExcerpt(redact, many, most)).not.toContain('ghp_')
    }
  })

  it('is redacted even if it is the whole text', () => {
    expect(redactedExcerpt(redact, TOKEN)).toMatch(/^\[redacted:/)
  })

  it('never splits a surrogate pair', () => {
    expect(redactedExcerpt(redact, 'ab😀cd', 3)).toBe('ab')
    expect(beginning('ab😀cd', 4)).toBe('ab😀')
  })
})
