import { rules } from '@secretlint/secretlint-rule-preset-recommend'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { openRedactor, type Redactor } from '../../src/audit/redact.ts'
import { RULES_WITHOUT_SECRETS, SECRET_SAMPLES, type SecretSample, sampleText } from './secret-samples.ts'

let redactor: Redactor
beforeAll(async () => {
  redactor = await openRedactor()
})

/** No part of the secret that is long enough to be useful may remain. */
function expectGone(secret: string, text: string) {
  for (let start = 0; start + 8 <= secret.length; start++) {
    expect(text).not.toContain(secret.slice(start, start + 8))
  }
}

describe('redact', () => {
  it('has a sample for every rule of the preset', () => {
    const names = rules.map((rule) => rule.meta.id.replace('@secretlint/secretlint-rule-', ''))
    const sampled = new Set(SECRET_SAMPLES.map((sample) => sample.rule))
    expect([...sampled, ...RULES_WITHOUT_SECRETS].sort()).toEqual([...names, 'orchub-token'].sort())
  })

  it.each(SECRET_SAMPLES)('removes a whole secret of $rule and leaves the rest (C12)', (sample) => {
    const { rule, before = '', secret, after = '' } = sample
    const alone = rule === 'gcp'
    const text = alone ? secret : `see ${before}${secret}${after}\nand go on`
    const redacted = redactor.redact(text)
    expectGone(secret, redacted)
    expect(redacted).toContain(`[redacted:${rule}]`)
    if (!alone) expect(redacted).toMatch(/^see .*\nand go on$/s)
  })

  it('keeps the label in front of a secret', () => {
    const sample = SECRET_SAMPLES.find((one) => one.before === 'AWS_SECRET_ACCESS_KEY=')!
    expect(redactor.redact(`export ${sampleText(sample)} # for S3`)).toBe(
      'export AWS_SECRET_ACCESS_KEY=[redacted:aws] # for S3',
    )
  })

  it('finds every secret in a text', () => {
    const [first, second] = SECRET_SAMPLES.filter((sample) => sample.rule === 'stripe') as [
      SecretSample,
      SecretSample,
    ]
    expect(redactor.redact(`${first.secret},${second.secret}`)).toBe('[redacted:stripe],[redacted:stripe]')
  })

  it('replaces overlapping secrets with one marker', () => {
    const token = SECRET_SAMPLES.find((sample) => sample.rule === 'github')!.secret
    expect(redactor.redact(`postgres://app:${token}@db.example.net/x`)).toBe(
      '[redacted:database-connection-string]',
    )
  })

  it('cannot be switched off by a comment in the text (C12)', () => {
    const token = SECRET_SAMPLES.find((sample) => sample.rule === 'gitlab')!.secret
    for (const comment of ['secretlint-disable', 'secretlint-disable-next-line', 'secretlint-disable-line']) {
      expectGone(token, redactor.redact(`// ${comment}\n${token} // ${comment}`))
    }
  })

  it('leaves account numbers alone', () => {
    expect(redactor.redact('account: 1234-5678-9012')).toBe('account: 1234-5678-9012')
  })

  it('returns ordinary text byte for byte', () => {
    const words = fc.oneof(
      fc.lorem(),
      fc.webUrl({ withQueryParameters: true }),
      fc.uuid(),
      fc.emailAddress(),
      fc.string({ unit: 'grapheme' }),
      fc.integer().map(String),
      fc.constantFrom(
        'src/audit/redact.ts',
        'msg_1042',
        '-----',
        '[redacted:github]',
        'task-list',
        '\n',
        '\t',
      ),
    )
    fc.assert(
      fc.property(fc.array(words), (parts) => {
        const text = parts.join(' ')
        expect(redactor.redact(text)).toBe(text)
      }),
    )
  })

  it('changes nothing the second time', () => {
    const pieces = fc.oneof(
      fc.constantFrom(...SECRET_SAMPLES.map(sampleText)),
      fc.constantFrom(' ', '\n', '"', '=', ':', '@', '/', '[redacted:npm]', 'https://', 'plain words'),
      fc.string({ maxLength: 6 }),
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
        const once = redactor.redact(parts.join(''))
        expect(redactor.redact(once)).toBe(once)
      }),
    )
  })

  it.each(['gh' + 's_1_', 'fig' + 'd_', `SG.a.${'w'.repeat(300)}`, 'https://a:', '-'])(
    'takes time in proportion to the text, for repeated %.12s (C20)',
    (unit) => {
      const time = (length: number) => {
        const text = unit.repeat(Math.ceil(length / unit.length))
        const rounds = [1, 2, 3].map(() => {
          const start = performance.now()
          redactor.redact(text)
          return performance.now() - start
        })
        return Math.min(...rounds)
      }
      time(1_000)
      // 8 times if linear, 64 times if quadratic; the constant covers times too short to measure.
      expect(time(102_400)).toBeLessThan(24 * time(12_800) + 5)
    },
  )
})

describe('redactData', () => {
  const token = SECRET_SAMPLES.find((sample) => sample.rule === 'orchub-token')!.secret

  it('looks into arrays, objects and keys (C12)', () => {
    const value = { list: [1, null, { deep: `say ${token}` }], [token]: true, plain: 'words' }
    expect(redactor.redactData(value)).toEqual({
      list: [1, null, { deep: 'say [redacted:orchub-token]' }],
      '[redacted:orchub-token]': true,
      plain: 'words',
    })
    expect(value.list[2]).toEqual({ deep: `say ${token}` })
  })

  it('loses no value when two keys become equal', () => {
    const redacted = redactor.redactData({ [token]: 1, [`${token}x`]: 2 })
    expect(redacted).toEqual({ '[redacted:orchub-token]': 1, '[redacted:orchub-token]#2': 2 })
  })

  it('keeps `__proto__` as an ordinary key', () => {
    const value: unknown = JSON.parse(`{"__proto__":{"admin":true},"t":"${token}"}`)
    expect(JSON.stringify(redactor.redactData(value))).toBe(
      '{"__proto__":{"admin":true},"t":"[redacted:orchub-token]"}',
    )
  })

  it('returns the same object when there is nothing to redact', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(redactor.redactData(value)).toBe(value)
      }),
    )
  })
})

describe('redactJson', () => {
  it('returns the same as redacting the value (C12)', () => {
    const strings = fc.oneof(fc.string(), fc.constantFrom(...SECRET_SAMPLES.map(sampleText)))
    const values = fc.oneof(strings, fc.array(strings), fc.dictionary(strings, fc.array(strings)))
    fc.assert(
      fc.property(values, (value) => {
        const json = JSON.stringify(value)
        expect(redactor.redactJson(json)).toBe(JSON.stringify(redactor.redactData(JSON.parse(json))))
      }),
    )
  })
})
