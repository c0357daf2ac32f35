import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { readPlainYaml } from '../../src/document/plain-yaml.ts'
import { readWithPlaces, readYaml } from '../../src/document/yaml.ts'

const MANY = 100_000

/** What lines of YAML are made of, right and wrong. */
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
    '    ',
    '`',
  ],
  ...[
    '|\n   t\n',
    '>-\n  u\n\n  v\n',
    '[a,\n b]',
    '"m\n n"',
    '"a\\\n\n b"',
    '"a\\\n b"',
    '\r',
    'k'.repeat(1100),
  ],
  ...['\u{1f600}', '\ufeff', '\u2028', '\x85', '\0', '\xa0'],
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

/** False: it was left to the reader that knows the places. */
function expectTheSame(source: string): boolean {
  const plain = readPlainYaml(source, MANY)
  if (plain === undefined) return false
  const careful = readWithPlaces(source, MANY)
  expect(careful.problems).toEqual([])
  expect(plain.value).toStrictEqual(careful.value)
  return true
}

describe('YAML', () => {
  it('is read quickly only where the reader that knows the places reads the same', () => {
    fc.assert(
      fc.property(text, (source) => void expectTheSame(source)),
      { numRuns: 20_000 },
    )
  })

  it('is read quickly as people and programs write it, in every style', () => {
    const style = fc.record({
      defaultStringType: fc.constantFrom(
        'PLAIN',
        'QUOTE_DOUBLE',
        'QUOTE_SINGLE',
        'BLOCK_LITERAL',
        'BLOCK_FOLDED',
      ),
      defaultKeyType: fc.constantFrom(null, 'PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE'),
      collectionStyle: fc.constantFrom('any', 'block', 'flow'),
      indent: fc.integer({ min: 1, max: 6 }),
      indentSeq: fc.boolean(),
      lineWidth: fc.constantFrom(0, 20, 80),
    } as const)
    const tree = fc.dictionary(fc.stringMatching(/^[a-z_]{1,12}$/), fc.jsonValue({ maxDepth: 4 }), {
      minKeys: 1,
    })
    let quickly = 0
    fc.assert(
      fc.property(tree, style, (value, options) => {
        const source = stringify(value, { ...options, aliasDuplicateObjects: false })
        if (expectTheSame(source)) quickly++
      }),
      { numRuns: 2_000 },
    )
    expect(quickly).toBeGreaterThan(400)
  })

  it('leaves to the other reader what it is not sure of', () => {
    const unsure = [
      ...[
        'a: &x 1',
        'a: *x',
        'a: !!str 1',
        '%YAML 1.2\n---\na',
        'a: 1\n---\nb: 2',
        'a: 1\na: 2',
        '__proto__: 1',
      ],
      ...[
        '[a]: 1',
        ': 1',
        'a:\t1',
        'a: |2\n    b',
        'a: >+\n  b\n\n',
        'a',
        '- a\r- b',
        'a: "\\U00110000"',
        `${'k'.repeat(1001)}: 1`,
        'a: 1e3007',
        'a: [',
        '- k:\n  - [] b: 1',
        '\ufeffa: 1',
        '',
      ],
    ]
    for (const source of unsure) expect(readPlainYaml(source, MANY), source).toBeUndefined()
    expect(readPlainYaml('[1, 2, 3]', 4)).toBeUndefined()
    expect(readPlainYaml('['.repeat(40) + ']'.repeat(40), MANY)).toBeUndefined()
  })

  it('says where things stand, however it was read', () => {
    const source = 'agents:\n  a: { command: "true" }\n  b:\n    - 1\n'
    expect(readPlainYaml(source, MANY)).toBeDefined()
    const { locate, value } = readYaml(source)
    expect(value).toEqual({ agents: { a: { command: 'true' }, b: [1] } })
    expect(locate(['agents', 'b', 0], 'value')).toMatchObject({ line: 4, column: 7 })
    expect(locate(['agents', 'a', 'command'], 'key')).toMatchObject({ line: 2, column: 8 })
  })
})
