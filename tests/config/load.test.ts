import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { parseConfig, readConfig, stateFolder } from '../../src/config/config.ts'
import { read } from './parse.ts'

const load = (...args: Parameters<typeof read>) => read(...args).config
const warningsOf = (yaml: string, env: Record<string, string> = {}) => read(yaml, { env }).warnings

const ONE = 'agents: { A: {} }\n'

describe('the smallest file', () => {
  const config = load('agents: { Master: {}, Worker: { parent: Master } }')

  it('is enough: every default is filled in (C18, C20, C24)', () => {
    const plain = {
      permissions: {},
      runtime: 'none',
      folder: '/team',
      deliver: 'together',
      with: {},
      autostart: true,
      onDemand: false,
      capabilities: [],
    }
    expect(config).toEqual({
      file: '/team/orc.yaml',
      stateFolder: '/team/.orc',
      agents: [
        { name: 'Master', ...plain },
        { name: 'Worker', parent: 'Master', ...plain },
      ],
      rules: { preset: 'mesh', allow: [], forbid: [], ask: [] },
      permissions: {},
      people: [],
      approvals: {},
      limits: {
        rate: { perMinute: 30, burst: 10 },
        pairRate: { perMinute: 30, burst: 10 },
        hops: 64,
        pingPong: { turns: 40, withinMs: 600_000 },
        messageBytes: 102_400,
        spend: { perAgent: undefined, total: undefined },
      },
      prices: [],
      models: {},
      tasks: {
        timeoutMs: undefined,
        retries: undefined,
        depth: undefined,
        reminders: undefined,
        checks: {},
        judge: undefined,
        judgeMs: undefined,
        selector: undefined,
        answerCheck: undefined,
        userInputMs: undefined,
      },
      runs: { planner: undefined },
      webhooks: [],
      confidential: [],
      notify: 'desktop',
      tmux: { socket: expect.stringMatching(/^orc-[0-9a-f]{10}$/), panesPerWindow: 4 },
      service: { host: '127.0.0.1', port: 7420, allowedHosts: [] },
      store: { engine: 'sqlite', file: '/team/.orc/orc.db', shown: 'sqlite:/team/.orc/orc.db' },
      lines: {},
    })
  })

  it('is deeply frozen', () => {
    expect(Object.isFrozen(config.agents[0]?.permissions)).toBe(true)
    expect(Object.isFrozen(config.limits.rate)).toBe(true)
    const nested = load('agents: { A: { runtime: scripted, with: { script: [{ say: hi }] } } }')
    const [step] = nested.agents[0]!.with.script as unknown[]
    expect(Object.isFrozen(step)).toBe(true)
  })
})

describe('a full file', () => {
  const config = load(`
# everything
agents:
  Master:
  Worker:
    parent: MASTER
    role: "writes: code"
    send: master
    receive: ["*"]
    permissions: { spawn_agent: ask, urgent: allow }
    runtime: scripted
    autostart: false
    with: { script: [{ on: start, say: hello }], 2: two }
    folder: work
    deliver: single
rules:
  preset: hub
  hub: master
  allow: [{ from: worker, to: "*", reason: it helps }]
  forbid:
  ask: []
permissions: { reset_session: deny }
limits:
  rate: { per_minute: 600, burst: 100 }
  pair_rate: { per_minute: 60, burst: 5 }
  hops: 8
  ping_pong: { turns: 6, within: 1.5h }
  message_bytes: 1000
  spend: { per_agent: 5, total: 20 }
prices:
  claude: { input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 }
  claude-haiku: { input: 1, output: 5 }
tmux: { socket: my-team, panes_per_window: 1 }
service: { host: localhost, port: 0, allowed_hosts: [orc.example.org, "box:8080", "[fe80::1]:80"] }
store: { url: "sqlite:data/my team.db" }
`)

  it('resolves names in any case to the canonical name (S0.10)', () => {
    expect(config.agents[1]).toEqual({
      name: 'Worker',
      parent: 'Master',
      role: 'writes: code',
      send: ['Master'],
      receive: ['*'],
      permissions: { spawn_agent: 'ask', urgent: 'allow' },
      runtime: 'scripted',
      folder: '/team/work',
      deliver: 'single',
      autostart: false,
      onDemand: false,
      capabilities: [],
      with: { script: [{ on: 'start', say: 'hello' }], 2: 'two' },
    })
    expect(config.rules).toEqual({
      preset: 'hub',
      hub: 'Master',
      allow: [{ from: ['Worker'], to: ['*'], reason: 'it helps' }],
      forbid: [],
      ask: [],
    })
  })

  it('parses limits, durations and paths', () => {
    expect(config.limits).toEqual({
      rate: { perMinute: 600, burst: 100 },
      pairRate: { perMinute: 60, burst: 5 },
      hops: 8,
      pingPong: { turns: 6, withinMs: 5_400_000 },
      messageBytes: 1000,
      spend: { perAgent: 5, total: 20 },
    })
    expect(config.prices).toEqual([
      ['claude-haiku', { input: 1, output: 5, cacheRead: 1, cacheWrite: 1 }],
      ['claude', { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }],
    ])
    expect(config.tmux).toEqual({ socket: 'my-team', panesPerWindow: 1 })
    expect(config.service).toEqual({
      host: 'localhost',
      port: 0,
      allowedHosts: ['orc.example.org', 'box:8080', '[fe80::1]:80'],
    })
    expect(config.store).toMatchObject({ engine: 'sqlite', file: '/team/data/my team.db' })
  })

  it('knows the line of every rule and permission', () => {
    expect(config.lines).toEqual({
      'rules.preset': 17,
      'rules.allow[0]': 19,
      'permissions.reset_session': 22,
      'agents.Worker.send': 8,
      'agents.Worker.receive': 9,
      'agents.Worker.permissions.spawn_agent': 10,
      'agents.Worker.permissions.urgent': 10,
    })
  })
})

describe('limits', () => {
  it.each(['off', 'false', '"off"'])('rate: %s turns both rates off', (off) => {
    const { limits } = load(`${ONE}limits: { rate: ${off} }`)
    expect([limits.rate, limits.pairRate]).toEqual([undefined, undefined])
    expect(limits.pingPong).toBeDefined()
  })

  it('uses rate as the default of pair_rate', () => {
    expect(load(`${ONE}limits: { rate: { per_minute: 600, burst: 50 } }`).limits.pairRate).toEqual({
      perMinute: 600,
      burst: 50,
    })
    const { limits } = load(`${ONE}limits: { rate: off, pair_rate: { per_minute: 6, burst: 5 } }`)
    expect(limits).toMatchObject({ rate: undefined, pairRate: { perMinute: 6, burst: 5 } })
  })

  it('can turn the loop breaker off', () => {
    expect(load(`${ONE}limits: { hops: off, ping_pong: off }`).limits).toMatchObject({
      hops: undefined,
      pingPong: undefined,
    })
  })

  it.each([
    ['90s', 90_000],
    ['500ms', 500],
    ['10 m', 600_000],
    ['1h', 3_600_000],
    ['2d', 172_800_000],
    ['0.5s', 500],
  ])('reads %s as %i ms', (text, ms) => {
    expect(load(`${ONE}limits: { ping_pong: { turns: 2, within: ${text} } }`).limits.pingPong?.withinMs).toBe(
      ms,
    )
  })
})

describe('the store', () => {
  const stored = (url: string, env = {}) =>
    load(`${ONE}store: { url: '${url}' }`, { file: '/t/orc.yaml', env }).store

  it('accepts absolute and relative SQLite files', () => {
    expect(stored('sqlite:x.db')).toMatchObject({ file: '/t/x.db' })
    expect(stored('sqlite:/var/x.db')).toMatchObject({ file: '/var/x.db' })
    expect(stored('sqlite:///var/x.db')).toMatchObject({ file: '/var/x.db' })
  })

  it('inserts variables into the URL and escapes user and password only', () => {
    const env = { PW: 'p@ss/w:rd', HOST: 'db.local:5433' }
    expect(stored(`postgres://orc:\${PW}@\${HOST}/team`, env)).toEqual({
      engine: 'postgres',
      url: 'postgres://orc:p%40ss%2Fw%3Ard@db.local:5433/team',
      shown: 'postgres://orc@db.local:5433/team',
      variables: ['PW', 'HOST'],
    })
    expect(stored(`\${URL}`, { URL: 'postgres://u:p%40@h/d?password=x' })).toEqual({
      engine: 'postgres',
      url: 'postgres://u:p%40@h/d?password=x',
      shown: 'postgres://u@h/d',
      variables: ['URL'],
    })
  })

  it('warns about a password in the file without showing it', () => {
    const found = warningsOf(`${ONE}store: { url: "postgres://u:hunter2@h/d" }`)
    expect(found).toMatchObject([{ line: 2, column: 15, path: 'store.url', message: 'holds a password' }])
    expect(JSON.stringify(found)).not.toContain('hunter2')
    expect(warningsOf(`${ONE}store: { url: "postgres://h/d?user=u&password=hunter2" }`)).toHaveLength(1)
    expect(warningsOf(`${ONE}store: { url: "postgres://u:\${PW}@h/d" }`, { PW: 'hunter2' })).toEqual([])
    expect(warningsOf(`${ONE}store: { url: "postgres://u@h/d" }`)).toEqual([])
  })
})

describe('warnings', () => {
  it.each([
    [`${ONE}service: { host: 0.0.0.0 }`, 'service.host'],
    ['agents: { A: {}, B: {} }\nrules: { preset: tree }', 'rules.preset'],
    ['agents: { A: {}, B: {} }\nrules: { hub: A }', 'rules.hub'],
    ['agents: { A: {}, B: {} }\nrules: { allow: [{ from: A, to: a }] }', 'rules.allow[0]'],
    ['agents: { A: { with: { x: 1 } } }', 'agents.A.with'],
  ])('%s', (yaml, path) => {
    const found = warningsOf(yaml)
    expect(found.map((warning) => warning.path)).toEqual([path])
    expect(found[0]).toMatchObject({ line: yaml.split('\n').length, hint: expect.stringMatching(/\w/) })
  })

  it('are absent for a good file', () => {
    expect(
      warningsOf('agents: { A: {}, B: { parent: A } }\nrules: { preset: tree }\nservice: { host: ::1 }'),
    ).toEqual([])
  })
})

it('lets others report problems with positions', () => {
  const loaded = parseConfig(
    'agents:\n  A:\n    runtime: scripted\n    with:\n      script:\n        - nonsense\n',
    { env: {} },
  )
  expect(
    loaded.ok && loaded.value.problemAt(['agents', 'A', 'with', 'script', 0], 'is odd', 'Mend it.'),
  ).toMatchObject({
    line: 6,
    column: 11,
    path: 'agents.A.with.script[0]',
  })
})

it('resolves a relative Unix socket against the file', () => {
  expect(load(`${ONE}service: { unix_socket: .orc/orc.sock }`).service.unixSocket).toBe('/team/.orc/orc.sock')
})

it('accepts aliases, a byte order mark, Windows line ends and names such as constructor', () => {
  expect(
    load('\uFEFFagents:\r\n  A: &a { permissions: { urgent: ask } }\r\n  B: *a\r\n').agents[1],
  ).toMatchObject({
    name: 'B',
    permissions: { urgent: 'ask' },
  })
  const odd = load('agents: { constructor: {}, toString: { parent: constructor }, "true": {} }')
  expect(odd.agents.map((agent) => agent.name)).toEqual(['constructor', 'toString', 'true'])
})

describe('the state folder', () => {
  it('is .orc beside the file, or ORC_HOME', () => {
    expect(stateFolder('/team/orc.yaml', {})).toBe('/team/.orc')
    expect(stateFolder('/team/orc.yaml', { ORC_HOME: '/var/orc' })).toBe('/var/orc')
    expect(stateFolder('/team/orc.yaml', { ORC_HOME: '' })).toBe('/team/.orc')
    expect(stateFolder(undefined, {})).toBe(resolve('.orc'))
    const { store } = load(ONE, { file: '/team/orc.yaml', env: { ORC_HOME: '/var/orc' } })
    expect(store).toMatchObject({ file: '/var/orc/orc.db' })
  })
})

describe('reading from disk', () => {
  function folder(): string {
    const path = mkdtempSync(join(tmpdir(), 'orc-config-'))
    onTestFinished(() => rmSync(path, { recursive: true }))
    return path
  }

  it('reads the file and resolves paths against its folder', () => {
    const file = join(folder(), 'orc.yaml')
    writeFileSync(file, ONE)
    expect(readConfig(file, {})).toMatchObject({ ok: true, value: { config: { file } } })
  })

  it('explains why a file cannot be read', () => {
    const path = folder()
    expect(readConfig(join(path, 'none.yaml'), {})).toMatchObject({
      ok: false,
      error: [{ line: 1, column: 1, message: 'The file does not exist' }],
    })
    expect(readConfig(path, {})).toMatchObject({ ok: false, error: [{ message: 'The path is a folder' }] })
    const huge = join(path, 'huge.yaml')
    writeFileSync(huge, '#'.repeat(300 * 1024))
    expect(readConfig(huge, {})).toMatchObject({
      ok: false,
      error: [{ message: 'The file is too large' }],
    })
  })
})
