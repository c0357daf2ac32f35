import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatProblems, parseConfig } from '../../src/config/config.ts'
import { problemsOf } from './parse.ts'

type Case = [name: string, yaml: string, place: string, message: string, hint?: string]

/** A mistake in the second line, after a valid first one. */
function second(name: string, line: string, column: string, message: string, hint = ''): Case {
  return [name, `agents: { A: {} }\n${line}`, `2:${column}`, message, hint]
}

const syntax: Case[] = [
  ['a tab', 'agents:\n\tA: {}\n', '2:1', 'Tabs are not allowed', 'spaces'],
  ['an open bracket', 'agents: { A: {}\n', '2:1', 'end with a }', 'bracket'],
  ['an open quote', 'agents: { "A: {} }', '1:19', 'closing "quote', 'quote'],
  ['a colon too many', 'agents:\n  A: { role: a: b }\n', '2:14', 'not allowed', 'quote'],
  second('a second document', '---\nx: 1\n', '1', 'second document', '---'),
  ['a tag', 'agents: !!js/function x', '1:9', 'Tags', '!'],
  ['a duplicate key', 'agents:\n  A: {}\n  B: {}\n  A: {}\n', '4:3', 'twice, first in line 2'],
  ['a missing anchor', 'agents: { A: *x }', '1:14', 'no anchor &x'],
  ['a map as a key', 'agents:\n  ? [a]\n  : {}\n', '2:5', 'plain word'],
  ['__proto__', 'agents:\n  __proto__: {}\n', '2:3', '__proto__'],
  ['__proto__ deep inside', 'agents: { A: { with: { x: [{ __proto__: 1 }] } } }', '1:30', '__proto__'],
  ['an alias inside itself', 'agents: { A: { with: &a { x: *a } } }', '1:30', 'nested too deeply'],
  ['deep brackets', `agents: ${'['.repeat(50_000)}`, '1:', 'nested too deeply'],
]

const shape: Case[] = [
  ['an empty file', '', '1:1', 'empty', 'agents: { Master'],
  ['only comments', '# nothing\n', '1:1', 'empty'],
  ['a list', '- A\n- B\n', '1:1', 'must be a map', 'agents: { Master'],
  ['a word', 'agents', '1:1', 'must be a map'],
  ['no agents key', '\nrules: {}\n', '1:1', '"agents" is missing', 'by name'],
  ['empty agents', 'rules:\nagents:\n', '2:8', '"agents" is empty'],
  ['no agent in agents', 'agents: {}', '1:9', 'no agents', 'Master'],
  ['agents as a list', 'agents: [A, B]', '1:9', 'must be a map (key: value) (got a list)', 'by name'],
  second('an unknown section', 'rule: {}\n', '1', 'Unknown key "rule"', '"rules"'),
  ['an unknown key', 'agents:\n  A:\n    parrent: B\n', '3:5', 'Unknown key "parrent"', '"parent"'],
  second(
    'a key in camel case',
    'limits: { rate: { perMinute: 3, burst: 1 } }',
    '',
    'Unknown key "perMinute"',
    '"per_minute"',
  ),
  ['a key nothing like any', 'agents: { A: { zzz: 1 } }', '1:16', 'Unknown key "zzz"', 'Known keys: parent,'],
  ['a merge key', 'agents:\n  A: &a {}\n  B:\n    <<: *a\n', '4:5', 'Unknown key "<<"', 'Merge'],
  second('a key that every object has', 'constructor: 1', '1', 'Unknown key "constructor"'),
  ['a number for a name', 'agents: { A: { parent: 7 } }', '1:24', 'must be text (got 7)', 'quotes'],
  ['true for a name', 'agents: { A: { send: [true] } }', '1:23', 'must be text (got true)', 'quotes'],
  ['a number for names', 'agents: { A: { send: 5 } }', '1:22', 'cannot be 5', 'Agents that'],
  ['an empty value', 'agents:\n  A:\n    parent:\n', '3:12', '"parent" is empty', 'reports to'],
  second(
    'an unknown preset',
    'rules: { preset: three }',
    '18',
    'one of: mesh, tree, hub, isolated (got "three")',
    '"tree"',
  ),
  [
    'an unknown verdict',
    'agents: { A: { permissions: { urgent: yes } } }',
    '1:39',
    'one of: allow, deny, ask',
    'urgent',
  ],
  [
    'an unknown action',
    'agents: { A: { permissions: { spawn: allow } } }',
    '1:31',
    'Unknown key "spawn"',
    'Known keys: spawn_agent',
  ],
  second(
    'permissions for *',
    'permissions: { "*": { urgent: allow } }',
    '16',
    'Unknown key "*"',
    'apply to all agents',
  ),
  [
    'an unknown runtime',
    'agents: { A: { runtime: script } }',
    '1:25',
    'one of: none, scripted',
    '"scripted"',
  ],
  [
    'a rule without to',
    'agents: { A: {} }\nrules:\n  forbid:\n    - from: A\n',
    '4:7',
    '"to" is missing',
    'Recipients',
  ],
  second('a rule for nobody', 'rules: { forbid: [{ from: [], to: A }] }', '27', 'must not be an empty list'),
  second('a word for a rule', 'rules: { forbid: [A] }', '19', 'must be a map', 'from: Worker'),
  second('a rate of zero', 'limits: { rate: { per_minute: 0, burst: 1 } }', '31', 'at least 1'),
  second(
    'a rate of words',
    'limits: { rate: { per_minute: lots, burst: 1 } }',
    '31',
    'must be a number (got "lots")',
  ),
  second('half a rate', 'limits: { rate: { per_minute: 3 } }', '11', '"burst" is missing'),
  second('a rate that is on', 'limits: { rate: true }', '17', 'cannot be true', 'or off'),
  second('half a hop', 'limits: { hops: 1.5 }', '17', 'cannot be 1.5'),
  second('no unit', 'limits: { ping_pong: { turns: 4, within: 10 } }', '42', 'must be text', '10m'),
  second('an unknown unit', 'limits: { ping_pong: { turns: 4, within: 3w } }', '42', 'not a duration', '10m'),
  second('no time at all', 'limits: { ping_pong: { turns: 4, within: 0s } }', '42', 'not a duration'),
  second('too large messages (C20)', 'limits: { message_bytes: 102401 }', '26', 'at most 102400'),
  second('a port beyond all', 'service: { port: 70000 }', '18', 'at most 65535'),
  second('a URL for a host', 'service: { allowed_hosts: ["http://x"] }', '28', 'not a valid host name'),
  second('any host at all', 'service: { allowed_hosts: ["*"] }', '28', 'not a valid host name'),
  second(
    'a line break in a reason',
    'rules: { ask: [{ from: A, to: "*", reason: "a\\nb" }] }',
    '44',
    'one line',
  ),
]

const names: Case[] = [
  ['a digit in front', 'agents: { 1st: {} }', '1:11', 'not a valid agent name', 'starts with a letter'],
  ['a number', 'agents:\n  404: {}\n', '2:3', '"404" is not a valid agent name'],
  ['a date', 'agents:\n  2024-01-01: {}\n', '2:3', 'not a valid agent name'],
  ['a space', 'agents: { "A B": {} }', '1:11', 'not a valid agent name'],
  ['a path', 'agents: { ../../etc: {} }', '1:11', 'not a valid agent name'],
  ['a dot', 'agents: { .hidden: {} }', '1:11', 'not a valid agent name'],
  ['a star', 'agents: { "*": {} }', '1:11', 'not a valid agent name'],
  ['null', 'agents: { ~: {} }', '1:11', 'not a valid agent name'],
  ['65 letters', `agents: { ${'a'.repeat(65)}: {} }`, '1:11', 'not a valid agent name'],
  ['a letter from elsewhere', 'agents: { Jörg: {} }', '1:11', 'not a valid agent name'],
  ['a reserved name', 'agents: { A: {}, Operator: {} }', '1:18', '"Operator" is reserved', 'another name'],
  [
    'names that differ in case',
    'agents:\n  Worker: {}\n  B: {}\n  wORKER: {}\n',
    '4:3',
    '"Worker" and "wORKER" differ only in case',
  ],
  [
    'a parent that is not there',
    'agents: { Master: {}, B: { parent: Mster } }',
    '1:36',
    'no agent "Mster"',
    '"Master"',
  ],
  [
    'a parent of nothing alike',
    'agents: { A: {}, B: { parent: Zoe } }',
    '1:31',
    'no agent "Zoe"',
    'The agents are A, B',
  ],
  ['a parent of itself', 'agents: { A: { parent: a } }', '1:24', '"A" is its own parent'],
  [
    'a circle of parents',
    'agents:\n  R: {}\n  A: { parent: C }\n  B: { parent: A }\n  C: { parent: B }\n',
    '3:16',
    'cycle: A → C → B → A',
  ],
  second('a rule about nobody', 'rules: { forbid: [{ from: A, to: [A, Bee] }] }', '38', 'no agent "Bee"'),
  ['send to nobody known', 'agents: { Ada: { send: Adaa } }', '1:24', 'no agent "Adaa"', '"Ada"'],
  ['a star among names', 'agents: { A: {}, B: { send: [A, "*"] } }', '1:29', '"*" with names'],
  second('a hub that is not named', 'rules: { preset: hub }', '18', 'needs an agent as the hub', 'hub: NAME'),
  second('a hub that is not there', 'rules: { preset: hub, hub: Bob }', '28', 'no agent "Bob"'),
]

const places: Case[] = [
  second(
    'a missing variable',
    `store: { url: 'postgres://u:\${NOPE}@h/d' }`,
    '15',
    'environment variable NOPE',
    'Set NOPE',
  ),
  second('another database', 'store: { url: mysql://h/d }', '15', 'SQLite or PostgreSQL URL', 'sqlite:FILE'),
  second('no database file', 'store: { url: "sqlite:" }', '15', 'no file'),
  second('a store in memory', 'store: { url: "sqlite::memory:" }', '15', 'memory'),
  second('not an address', 'store: { url: "postgres://h:x:y/d" }', '15', 'not a valid URL'),
  second('a socket and a port', 'service: { port: 1, unix_socket: s }', '21', 'cannot be combined'),
  second('a long socket', `service: { unix_socket: /${'s'.repeat(107)} }`, '25', '107 bytes'),
]

describe.each([
  ['syntax', syntax],
  ['shape', shape],
  ['names', names],
  ['places', places],
])('a mistake in %s is reported with line, column and hint', (_, cases) => {
  it.each(cases)('%s', (_name, yaml, place, message, hint = '') => {
    const problems = problemsOf(yaml)
    const found = problems.find((problem) => problem.message.includes(message))
    expect(found, JSON.stringify(problems)).toBeDefined()
    expect(`${found?.line}:${found?.column}`).toMatch(
      place.endsWith(':') ? new RegExp(`^${place}`) : new RegExp(`^${place}$`),
    )
    expect(found?.hint).toContain(hint)
  })
})

it('reports all mistakes at once, in the order of the file', () => {
  const yaml = 'limits: { hops: 0 }\nagents:\n  A: { parrent: B, role: 5 }\n  1x: {}\nstore: []\n'
  expect(problemsOf(yaml).map(({ line, path }) => `${line} ${path}`)).toEqual([
    '1 limits.hops',
    '3 agents.A.parrent',
    '3 agents.A.role',
    '4 agents.1x',
    '5 store',
  ])
})

it('reports each of two cycles once', () => {
  const circles = problemsOf(
    'agents: { A: { parent: B }, B: { parent: A }, C: { parent: D }, D: { parent: C }, E: { parent: A } }',
  )
  expect(circles).toHaveLength(2)
})

describe('the encoding of a file', () => {
  it('is refused with the position of the first bad byte', () => {
    const bytes = Buffer.concat([
      Buffer.from('agents:\n  Müller'),
      Buffer.from([0xe4, 0x62]),
      Buffer.from(': {}\n'),
    ])
    expect(problemsOf(bytes)).toMatchObject([{ line: 2, column: 9, message: 'The file is not UTF-8' }])
    expect(problemsOf(Buffer.from([0x61, 0xc3]))).toMatchObject([{ message: 'The file is not UTF-8' }])
  })

  it('is recognized if it is UTF-16', () => {
    const [problem] = problemsOf(Buffer.from('\uFEFFagents: {}', 'utf16le'))
    expect(problem?.hint).toContain('UTF-16')
  })

  it('may be UTF-8 with or without a byte order mark', () => {
    expect(problemsOf(Buffer.from('\uFEFFagents: { A: { role: "Prüfer" } }'))).toEqual([])
  })
})

describe('formatted problems', () => {
  it('point at the position with a caret', () => {
    const yaml = 'agents:\n  Master: {}\n  Worker: { parent: Mastr }\n'
    expect(formatProblems(problemsOf(yaml), 'team/orc.yaml')).toBe(
      [
        'team/orc.yaml:3:21: agents.Worker.parent: There is no agent "Mastr"',
        '  3 |   Worker: { parent: Mastr }',
        '    |                     ^',
        '  hint: Did you mean "Master"?',
      ].join('\n'),
    )
  })

  it('never show a password', () => {
    const valid = problemsOf('agents: { A: {} }\nstore: { url: "postgres://u:hunter2@h:bad/d" }')
    const broken = problemsOf('agents: { A: {} }\nstore: { url: postgres://u:hunter2@h/d, ]}')
    for (const problems of [valid, broken]) {
      expect(problems.length).toBeGreaterThan(0)
      expect(JSON.stringify(problems) + formatProblems(problems)).not.toContain('hunter2')
    }
  })

  it('contain no control characters and cut long lines', () => {
    const yaml = `agents: { A: {}, "\\e[2J${'x'.repeat(2000)}\u0007": {} }`
    const text = formatProblems(problemsOf(yaml))
    expect(text).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/)
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(600)
  })

  it('are limited to twenty', () => {
    const many = problemsOf(
      `agents: { A: {} }\n${Array.from({ length: 30 }, (_, i) => `k${i}: 1`).join('\n')}`,
    )
    expect(many).toHaveLength(30)
    expect(formatProblems(many).endsWith('… and 10 more')).toBe(true)
  })
})

describe('hostile input', () => {
  const bomb = [
    'a: &a [1,2,3,4,5,6,7,8,9,0]',
    ...'bcdefghij'.split('').map((letter, index) => {
      const before = `*${'abcdefghi'[index]}`
      return `${letter}: &${letter} [${Array.from({ length: 10 }, () => before).join(',')}]`
    }),
  ].join('\n')

  it('with aliases that expand to billions of values is refused quickly', () => {
    expect(problemsOf(`${bomb}\nagents: { A: { with: { x: *j } } }`)).toMatchObject([
      { message: 'The file holds too many values' },
    ])
  })

  it.each([
    ['keys', `agents:\n${Array.from({ length: 20_000 }, (_, i) => `  k${i}:\n`).join('')}`, 0],
    [
      'mentions of nobody',
      `agents:\n${Array.from({ length: 4000 }, (_, i) => ` n${i}:\n`).join('')}rules:\n allow:\n  - from: n1\n    to: [${Array.from({ length: 20_000 }, (_, i) => `zz${i}`).join()}]`,
      20_000,
    ],
    ['commas', `agents: [${','.repeat(100_000)}]`, 5],
  ])(
    'of a great many %s is read in seconds',
    (_name, yaml, count) => {
      expect(problemsOf(yaml)).toHaveLength(count)
    },
    20_000,
  )

  it('over 256 KiB is refused without parsing', () => {
    expect(problemsOf(' '.repeat(256 * 1024 + 1))).toMatchObject([{ message: 'The file is too large' }])
  })

  const names = 'agents rules limits A B parent preset hub forbid from to * &x *x off __proto__ ~'.split(' ')
  const signs = [...`:-{}[],"'#|?!%\t\n`, ': ', '- ', '\n  ']
  const word = fc.constantFrom(...names, ...signs)
  it('gives a config, or problems with position and hint, and never throws', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(word, { maxLength: 40 }).map((words) => words.join('')),
    )
    fc.assert(
      fc.property(text, (yaml) => {
        const loaded = parseConfig(yaml, { env: {} })
        if (loaded.ok) return
        expect(loaded.error.length).toBeGreaterThan(0)
        for (const { line, column, hint, message } of loaded.error) {
          expect([line >= 1, column >= 1, hint !== '', message !== '']).toEqual([true, true, true, true])
        }
        expect(formatProblems(loaded.error)).toMatch(/^orc\.yaml:\d+:\d+: /)
      }),
      { numRuns: 500 },
    )
  })
})
