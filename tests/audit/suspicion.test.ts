import fc from 'fast-check'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { type FindSecrets, loadSecretRules, mayHoldSecret } from '../../src/audit/redact.ts'
import { SECRET_SAMPLES, sampleText } from './secret-samples.ts'

/** Every pattern that the rules run over a text, taken from the rules themselves. */
async function collectPatterns(): Promise<RegExp[]> {
  const findSecrets = await loadSecretRules()
  const matchAll = vi.spyOn(String.prototype, 'matchAll')
  try {
    findSecrets('')
    return matchAll.mock.calls.map(([pattern]) => pattern as RegExp)
  } finally {
    matchAll.mockRestore()
  }
}

const patterns = await collectPatterns()

/** These match more than their rules report: URIs without a password, account numbers. */
const MATCHES_MORE = /<username>|ACCOUNT\|account/

/** Strings of the pattern's language; dropping its boundaries makes that larger, which only makes the test harder. */
function stringsOf(pattern: RegExp): fc.Arbitrary<string> {
  const source = pattern.source.replaceAll(/\(\?<?!(?:\[[^\]]*\]|\\.|[^()[\]])*\)|\\b/g, '')
  const strings = fc.stringMatching(new RegExp(source, pattern.flags.replaceAll(/[gi]/g, '')))
  if (!pattern.ignoreCase) return strings
  return fc
    .tuple(strings, fc.boolean())
    .map(([text, upper]) => (upper ? text.toUpperCase() : text.toLowerCase()))
}

describe('mayHoldSecret', () => {
  let findSecrets: FindSecrets
  beforeAll(async () => {
    findSecrets = await loadSecretRules()
  })

  it('knows the patterns of all rules', () => {
    expect(patterns.length).toBeGreaterThan(35)
  })

  it.each(patterns)('suspects whatever matches %s (C12)', (pattern) => {
    fc.assert(
      fc.property(stringsOf(pattern), fc.string(), fc.string(), (match, before, after) => {
        const text = before + match + after
        if (MATCHES_MORE.test(pattern.source) && findSecrets(text).length === 0) return
        expect(mayHoldSecret(text)).toBe(true)
        expect(mayHoldSecret(JSON.stringify({ [text]: [text] }))).toBe(true)
      }),
      { numRuns: 60 },
    )
  })

  it.each(SECRET_SAMPLES)('suspects a sample of $rule, also inside JSON inside JSON (C12)', (sample) => {
    const text = `\n${sampleText(sample)}\n`
    expect(mayHoldSecret(text)).toBe(true)
    expect(mayHoldSecret(JSON.stringify({ text }))).toBe(true)
    expect(mayHoldSecret(JSON.stringify({ text: JSON.stringify({ text }) }))).toBe(true)
  })

  it('suspects in serialised JSON whatever it suspects in the string itself (C12)', () => {
    const pieces = fc.constantFrom(
      'npm_',
      'sk-',
      '://',
      '@',
      '"',
      '\\',
      '\n',
      '\u0001',
      '-----BEGIN',
      'SG.',
      'a',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(pieces, fc.string({ unit: 'binary', maxLength: 5 }))), (parts) => {
        const text = parts.join('')
        if (mayHoldSecret(text)) expect(mayHoldSecret(JSON.stringify([text]))).toBe(true)
      }),
    )
  })

  it('suspects a JSON text that spells a private key with escapes (C12)', () => {
    const spelt = '{"private_key_id":"1","private_key":"\\u002d----\\u0042EGIN PRIVATE KEY-----"}'
    expect(findSecrets(spelt)).toHaveLength(1)
    expect(mayHoldSecret(spelt)).toBe(true)
  })

  it.each([
    'Worker reports: the build passed in 12.3 s; see docs/architecture.md and src/audit/chain.ts.',
    'task-list of 2026-03-01T12:00:00Z: msg_1042, req_7, https://example.com/a/b?c=d#e, git@github.com:a/b.git',
    '| a | b |\n|-----|-----|\n| 0f3c2d9e-1b7a-4c1d-9e55-6a2f3b1c0d9e | 9b1c2d3e4f5061728394a5b6c7d8e9f001122334 |',
    '{"type":"send_message","to":"Worker","title":"npm run build","content":"secret access for the key account"}',
  ])('does not suspect ordinary text: %s', (text) => {
    expect(mayHoldSecret(text)).toBe(false)
  })
})
