import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { beforeAll, describe, expect, it } from 'vitest'
import type { AuditEntryAnswer } from '../../src/api/contract.ts'
import { matchesQuery } from '../../src/audit/matches-query.ts'
import { createTeamFolder, servedTeam } from './orc.ts'

const team = servedTeam()

beforeAll(async () => {
  await team.orc(['send-message', '--from', 'Master', '--to', 'Worker', '--title', 'First', 'Do this.'])
  await team.orc(['send-message', '--from', 'Worker', '--to', 'Master', '--title', 'Second', 'Done.'])
  await team.orc('send-message --from Spy --to Master psst')
  await team.orc('send-message --from Spy --to Worker --priority high hello')
})

describe('orc status', () => {
  it('shows agents, pending messages and open requests', async () => {
    const ran = await team.orc('status')
    expect(ran.out).toMatch(/Worker {2}unknown {2}2 waiting {2}reports to Master/)
    expect(ran.out).toContain('Nothing needs your attention.')
    expect((await team.orc('status --json')).json()).toMatchObject([
      { open_requests: 0, store: { engine: 'sqlite' } },
    ])
  })
})

describe('orc message list', () => {
  it('lists messages with their delivery states', async () => {
    const lines = (await team.orc('messages')).out.trim().split('\n')
    expect(lines).toHaveLength(3)
    expect(lines[0]).toMatch(/^msg_1 {2}Master → Worker {2}\S+Z, queued {2}First$/)
    expect((await team.orc('messages --agent Spy --since 1h --json')).json()).toMatchObject([
      { priority: 'high' },
    ])
    expect((await team.orc('messages --limit 1')).out.trim().split('\n')).toHaveLength(1)
  })

  it('explains the format of a time', async () => {
    await team.fails('messages --since yesterday', 2, '10m')
  })

  it('shows one message with every step of its delivery (C27)', async () => {
    await team.orc('mailbox-check --agent Master')
    const ran = await team.orc('message msg_2')
    expect(ran.out).toMatch(/queued {3}stored in the mailbox/)
    expect(ran.out).toMatch(/read {5}acknowledged by operator/)
    const [json] = (await team.orc('message msg_2 --json')).json() as { steps: { state: string }[] }[]
    expect(json!.steps.map(({ state }) => state)).toEqual(['queued', 'written', 'read'])
    expect((await team.orc('message msg_99')).code).toBe(7)
    expect((await team.orc('message show')).err).toContain('ID is missing')
  })
})

describe('orc audit', () => {
  it('prints the readable lines, oldest first (S3.22)', async () => {
    const lines = (await team.orc('audit')).out.trim().split('\n')
    for (const line of lines) expect(line).toMatch(/^\[\d{4}-.+Z\] \[.+\] [A-Z_.]+: /)
    expect(lines.findIndex((line) => line.includes('First'))).toBeLessThan(
      lines.findIndex((line) => line.includes('Second')),
    )
  })

  it.each([
    ['--agent Spy', ['COMMAND.BLOCKED', 'MESSAGE.ACCEPTED']],
    ['--agent Master --with Worker --type message', ['MESSAGE.ACCEPTED', 'MESSAGE.ACCEPTED']],
    ['--type command.blocked', ['COMMAND.BLOCKED']],
    ['--text first', ['MESSAGE.ACCEPTED']],
    ['--class public', ['SERVICE.STARTED']],
    ['--since 1h --until 30m', []],
  ])('finds with %s', async (args, kinds) => {
    const { out } = await team.orc(`audit ${args}`)
    expect([...out.matchAll(/\] ([A-Z_.]+): /g)].map(([, kind]) => kind)).toEqual(kinds)
  })

  it('prints as many JSON entries as requested', async () => {
    const entries = (await team.orc('audit --limit 2 --json')).json()
    expect(entries).toHaveLength(2)
    expect(entries[0]).toMatchObject({
      seq: expect.any(Number),
      hash: expect.any(String),
      type: expect.any(String),
    })
  })

  it('shows an agent only entries it may see', async () => {
    const env = { ORC_TOKEN: await team.token('Worker') }
    const { out } = await team.orc('audit', { env })
    expect(out).toContain('First')
    expect(out).not.toContain('psst')
    expect(out).not.toContain('TOKEN.MINTED')
  })

  it('follows without a gap, and ends quietly with Ctrl-C', async () => {
    const { child, shows, ended } = team.begin('audit --follow --type message')
    await shows('Second')
    await team.orc('send-message --to Worker followed-1')
    await team.orc('send-message --from Spy --to Master unseen')
    await team.orc('send-message --to Worker followed-2')
    await shows('followed-2')
    child.kill('SIGINT')
    const ran = await ended
    expect(ran).toMatchObject({ code: 130, err: '' })
    expect(ran.out.match(/followed-1/g)).toHaveLength(1)
    expect(ran.out).not.toContain('unseen')
  })

  it('refuses options that cannot be combined', async () => {
    expect((await team.orc('audit --with Worker')).err).toContain('--with needs --agent')
    expect((await team.orc('audit --follow --until 1m')).code).toBe(2)
    expect((await team.orc('audit --class secret')).err).toContain(
      '--class must be one of: public, internal, private',
    )
  })

  it('filters live entries like the service filters stored ones', async () => {
    const all = (await team.orc('audit --json')).json() as AuditEntryAnswer[]
    const queries = [
      { agent: 'spy' },
      { agent: 'Master', with: 'Worker' },
      { type: 'message' },
      { type: 'command.blocked' },
      { text: 'FIRST' },
      { class: 'private' as const },
    ]
    for (const query of queries) {
      const args = Object.entries(query).flatMap(([name, value]) => [`--${name}`, value])
      const found = (await team.orc(['audit', '--json', ...args])).json()
      expect(found.length).toBeGreaterThan(0)
      expect(all.filter((entry) => matchesQuery(query, entry))).toEqual(found)
    }
  })
})

describe('orc audit verify and export', () => {
  it('verifies the log of the running service', async () => {
    const ran = await team.orc('audit verify')
    expect(ran).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^ok {2}\d+ entries and \d+ messages? verified/),
    })
    expect((await team.orc('audit verify --json')).json()).toMatchObject([{ ok: true }])
  })

  it('exports a file that verifies and that only its owner can read', async () => {
    const ran = await team.orc('audit export -o out.jsonl')
    const file = join(team.folder, 'out.jsonl')
    expect(ran).toMatchObject({ code: 0, out: '', err: expect.stringMatching(/^\d+ entries in out.jsonl/) })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(team.folder).filter((name) => name.includes('.part'))).toEqual([])
    const verified = await team.orc('audit verify out.jsonl')
    expect(verified).toMatchObject({ code: 0, out: expect.stringContaining('head: entry') })
    const hash = createHash('sha256').update(readFileSync(file)).digest('hex')
    const piped = await team.orc('audit export')
    expect(createHash('sha256').update(piped.out).digest('hex')).toBe(hash)
  })

  it.each([
    [
      'changed',
      (lines: string[]) => lines.with(2, lines[2]!.replace('"text":"', '"text":"x')),
      'Entry 3 does not match',
    ],
    ['removed', (lines: string[]) => lines.toSpliced(2, 1), 'Entry 3 is missing'],
    [
      'reordered',
      (lines: string[]) => lines.with(2, lines[3]!).with(3, lines[2]!),
      'Entry 3 comes after entry 4',
    ],
    ['first', (lines: string[]) => lines.slice(1), 'begins with entry 2'],
    ['missing last', (lines: string[]) => lines.toSpliced(-2, 1), 'does not match its entries'],
    ['last but its line', (lines: string[]) => lines.slice(0, -1), 'truncated or not a complete export'],
    ['cut', (lines: string[]) => lines.with(-1, lines.at(-1)!.slice(0, 20)), 'truncated or changed there'],
    [
      'half',
      (lines: string[]) => [...lines.slice(0, 2), lines[2]!.slice(0, 40)],
      'Line 3 is not an audit entry',
    ],
    ['added', (lines: string[]) => [...lines, lines[0]!], 'comes after the end'],
    ['nonexistent', () => [], 'truncated or not a complete export'],
  ])('finds a %s entry in an export and names it', async (name, damage, said) => {
    const lines = (await team.orc('audit export')).out.trimEnd().split('\n')
    const file = join(team.folder, `${name}.jsonl`)
    writeFileSync(file, `${damage(lines).join('\n')}\n`)
    const ran = await team.orc(['audit', 'verify', file])
    expect(ran).toMatchObject({ code: 1, out: '', err: expect.stringContaining(said) })
  })

  it('exports text, and says that text cannot be verified', async () => {
    await team.orc('audit export --format text -o out.txt')
    expect(readFileSync(join(team.folder, 'out.txt'), 'utf8')).toMatch(/^\[.+\] \[.+\] TOKEN\.MINTED: /)
    await team.fails('audit verify out.txt', 2, 'line 1 is not an audit entry')
  })

  it('names a missing file and a folder that is not writable', async () => {
    await team.fails('audit verify nowhere.jsonl', 7, 'nowhere.jsonl: no such file')
    await team.fails('audit export -o nowhere/a.jsonl', 7, 'orc: nowhere/a.jsonl: no such')
  })

  it('ends an export with the head, and prints it with --json', async () => {
    const ran = await team.orc('audit export -o summed.jsonl --json')
    const lines = readFileSync(join(team.folder, 'summed.jsonl'), 'utf8').trimEnd().split('\n')
    const end = JSON.parse(lines.at(-1)!)
    const { chain, seq, hash } = JSON.parse(lines.at(-2)!)
    expect(end).toEqual({ head: { chain, seq, hash }, count: lines.length - 1 })
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(ran.json()).toEqual([{ file: 'summed.jsonl', format: 'jsonl', ...end }])
    const text = await team.orc('audit export --format text')
    expect(text.out.trimEnd().split('\n')).toHaveLength(lines.length - 1)
    expect((await team.orc('audit export --format text --json')).code).toBe(2)
  })

  it('leaves no partial file behind when it fails', async () => {
    const env = { ORC_TOKEN: 'orct_wrong' }
    const ran = await team.orc('audit export -o never.jsonl', { env })
    expect(ran.code).toBe(8)
    expect(readdirSync(team.folder).filter((name) => name.startsWith('never'))).toEqual([])
  })

  it('reads the store while no service runs, and finds a changed message', async () => {
    const other = createTeamFolder()
    try {
      await other.start()
      await other.orc('send-message --from Master --to Worker original')
      await other.stop()
      expect((await other.orc('audit verify')).out).toContain('1 messages')
      expect((await other.orc('audit export -o a.jsonl')).code).toBe(0)
      expect((await other.orc('audit verify a.jsonl')).code).toBe(0)
      const asAgent = await other.orc('audit verify', { env: { ORC_TOKEN: 'orct_any' } })
      expect(asAgent).toMatchObject({ code: 8 })
      const database = new DatabaseSync(join(other.state, 'orc.db'))
      database.exec("UPDATE messages SET content = 'forged'")
      database.close()
      const ran = await other.orc('audit verify')
      expect(ran).toMatchObject({ code: 1, err: expect.stringContaining('msg_1 is not the message') })
      expect(existsSync(join(other.state, 'service.json'))).toBe(false)
    } finally {
      await other.close()
    }
  })
})
