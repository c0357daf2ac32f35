import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { readYaml } from '../../src/yaml/yaml.ts'

/** Fragments of valid and invalid YAML lines. */
const WORDS = String.raw`
  a b agents true No null ~ NULL tRue -1 +7 007 0o17 0x1F 1e3 1e3007 1_000 .5 -.inf .NaN 1. 12345678901234567890 -0 1:30 2026-11-15 = << @a %
  a#b a:b -a ?a é __proto__ : - , [ ] { } [] {} " ' "q\n" "\x41\u00e9" "\U00110000" 'it''s' "" '' | > |- >+ |2 *a --- ...`
const SPACED = [
  ...[
    'x y',
    ': ',
    '- ',
    '? ',
    ', ',
    '# no',
    ' # no',
    '&a ',
    '!t ',
    '!!str ',
    '%YAML 1.2',
    '\t',
    ' ',
    '  ',
    '`',
  ],
  ...['|\n   t\n', '>-\n  u\n\n  v\n', '[a,\n b]', '"m\n n"', '"a\\\n\n b"', '"a\\\n b"', '\r'],
  ...['k'.repeat(1100), '\u{1f600}', '\ufeff', '\u2028', '\x85', '\0', '\xa0'],
]
const fragment = fc.constantFrom(...WORDS.trim().split(/\s+/), ...SPACED)
const indent = fc.constantFrom('', '', '  ', '    ', '      ', ' ', '- ', '  - ', '\t')
const line = fc
  .tuple(indent, fc.array(fragment, { maxLength: 6 }))
  .map(([before, parts]) => before + parts.join(''))
const text = fc
  .tuple(
    fc.array(line, { maxLength: 8 }),
    fc.constantFrom('\n', '\n', '\n', '\r\n'),
    fc.constantFrom('', '\n'),
  )
  .map(([lines, end, last]) => lines.join(end) + last)

function messages(source: string, maxNodes?: number): string[] {
  const read = readYaml(source, { example: 'a: 1', ...(maxNodes === undefined ? {} : { maxNodes }) })
  return read.ok ? [] : read.error.map(({ message }) => message)
}

describe('reading YAML', () => {
  it('accepts any text or refuses it with a position and a hint', () => {
    fc.assert(
      fc.property(text, (source) => {
        const read = readYaml(source, { example: 'a: 1' })
        const positions = read.ok
          ? [{ ...read.value.locate([], 'value'), message: '-', hint: '-' }]
          : read.error
        for (const { line, column, message, hint } of positions) {
          expect(line).toBeGreaterThan(0)
          expect(column).toBeGreaterThan(0)
          expect(message).not.toBe('')
          expect(hint).not.toBe('')
        }
        // Plain data only: no prototype, class instance or alias survives the reading.
        const value = read.ok ? read.value.value : null
        if (Number.isFinite(value ?? 0)) expect(JSON.stringify(value)).toBeDefined()
      }),
      { numRuns: 5_000 },
    )
  })

  it('gives the same value for every style', () => {
    const style = fc.record({
      defaultStringType: fc.constantFrom(
        'PLAIN',
        'QUOTE_DOUBLE',
        'QUOTE_SINGLE',
        'BLOCK_LITERAL',
        'BLOCK_FOLDED',
      ),
      defaultKeyType: fc.constantFrom(null, 'PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE'),
      collectionStyle: fc.constantFrom('any', 'flow'),
      indent: fc.integer({ min: 1, max: 6 }),
      indentSeq: fc.boolean(),
      lineWidth: fc.constantFrom(0, 20, 80),
    } as const)
    // The library's block styles lose spaces at the ends of a text when writing.
    const word = fc.string({ maxLength: 20 }).map((value) => value.trim())
    const leaf = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), word)
    const key = fc.stringMatching(/^[a-z_]{1,12}$/).filter((name) => name !== '__proto__')
    const inner = fc.oneof(leaf, fc.array(leaf, { maxLength: 4 }))
    const map = fc.dictionary(key, inner, { minKeys: 1, maxKeys: 4, noNullPrototype: true })
    const tree = fc.dictionary(key, fc.oneof(inner, map, fc.array(map, { maxLength: 3 })), {
      minKeys: 1,
      maxKeys: 4,
      noNullPrototype: true,
    })
    fc.assert(
      fc.property(tree, style, (value, options) => {
        const text = stringify(value, { ...options, aliasDuplicateObjects: false })
        expect(readYaml(text, { example: 'a: 1' })).toMatchObject({ ok: true, value: { value } })
      }),
      { numRuns: 1_000 },
    )
  })

  it('refuses ambiguous YAML', () => {
    expect(messages('a: *x')[0]).toContain('no anchor &x')
    expect(messages('a: !t 1')).toEqual(['Tags are not supported'])
    expect(messages('a: 1\n---\nb: 2')).toEqual(['A second document begins here'])
    expect(messages('a: 1\na: 2')[0]).toContain('The key "a" appears twice')
    expect(messages('__proto__: 1')[0]).toContain('__proto__')
    expect(messages('[a]: 1')[0]).toContain('A key must be a plain word')
    expect(messages('- k:\n  - [] b: 1')).not.toEqual([])
  })

  it('limits the number of values, aliases included, and the depth', () => {
    expect(messages('[1, 2, 3]', 3)).toEqual(['The file holds too many values'])
    const bomb = [
      'a0: &a0 [x, x]',
      ...Array.from({ length: 40 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]`),
    ]
    expect(messages(bomb.join('\n'))).toHaveLength(1)
    expect(messages('['.repeat(40) + ']'.repeat(40))).toEqual(['is nested too deeply'])
    expect(messages('['.repeat(100_000))).not.toEqual([])
  })

  it('locates keys and values', () => {
    const source = 'agents:\n  a: { command: "true" }\n  b:\n    - 1\n'
    const read = readYaml(source, { example: 'a: 1' })
    if (!read.ok) throw new Error(JSON.stringify(read.error))
    const { locate, value } = read.value
    expect(value).toEqual({ agents: { a: { command: 'true' }, b: [1] } })
    expect(locate(['agents', 'b', 0], 'value')).toMatchObject({ line: 4, column: 7 })
    expect(locate(['agents', 'a', 'command'], 'key')).toMatchObject({ line: 2, column: 8 })
  })
})
