import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type CommandDefinition, defineCommand } from '../../../src/protocol/command.ts'
import { createRegistry, shellShapes } from '../../../src/protocol/registry.ts'
import { createTeamFolder, sharedTeam } from '../orc.ts'

/** A command type of an application, as any embedding program may add one. */
const measure = defineCommand({
  type: 'note_measurement',
  summary: 'Write a measurement down',
  fields: z.object({
    unit: z.enum(['m', 'kg']).describe('The unit'),
    reading: z.string().describe('What was read'),
  }),
  body: 'reading',
  example: 'orc note-measurement --unit m 12',
})

const team = sharedTeam()

beforeAll(async () => {
  const handle = (_: unknown, fields: Record<string, unknown>) => ({
    status: 'ok' as const,
    result: `noted ${fields.reading} ${fields.unit}`,
    details: { fields },
  })
  await team.start({ commands: [{ definition: measure, handler: { handle } }] })
})

describe('the shell form of a command (S1.17)', () => {
  it('sends a message and says that it is queued, not that it was read (C27)', async () => {
    const options = ['--from', 'Master', '--to', 'worker', '--title', 'Sum']
    const ran = await team.orc(['send-message', ...options, 'What is 15 + 27?'])
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(ran.out).toMatch(/^delivered: msg_\d+, in the mailbox of Worker \(delivery: queued\)\n$/)
    expect((await team.mailbox('Worker')).at(-1)).toMatchObject({ title: 'Sum', content: 'What is 15 + 27?' })
  })

  it('accepts --key=value, joins words, and leaves everything after -- alone', async () => {
    const ran = await team.orc(['send-message', '--to=Worker', '--title=--odd', '--', '--not', 'an option'])
    expect(ran.code).toBe(0)
    expect((await team.mailbox('Worker')).at(-1)).toMatchObject({
      title: '--odd',
      content: '--not an option',
    })
  })

  it('prints the receipt with --json, and nothing else', async () => {
    const ran = await team.orc('send-message --to Worker hello --json')
    expect(ran.err).toBe('')
    expect(ran.json()).toEqual([
      {
        status: 'delivered',
        message_id: expect.stringMatching(/^msg_\d+$/),
        delivery: 'queued',
        to: 'Worker',
      },
    ])
  })

  it.each([
    ['\n', ''],
    ['\r\n', ''],
    ['\n\n', '\n'],
    ['', ''],
  ])('reads the body from standard input, unchanged but for one final line end: %j', async (end, kept) => {
    const text = 'first line\n\n  "quoted" <tag> ünïcode 🧮'
    await team.orc(['send-message', '--to', 'Worker', '-'], { input: text + end })
    expect((await team.mailbox('Worker')).at(-1)?.content).toBe(text + kept)
  })

  it('reads the body from a pipe or a redirected file if none is given', async () => {
    expect((await team.shell('echo piped | orc send-message --to Worker')).code).toBe(0)
    expect((await team.mailbox('Worker')).at(-1)?.content).toBe('piped')
    expect((await team.shell('orc send-message --to Worker < orc.yaml')).code).toBe(0)
    expect((await team.mailbox('Worker')).at(-1)?.content).toContain('agents:')
    const nothing = await team.shell('orc send-message --to Worker < /dev/null')
    expect(nothing).toMatchObject({ code: 2, err: expect.stringContaining('CONTENT is missing') })
  })

  it('refuses standard input that is not UTF-8 instead of changing it', async () => {
    const ran = await team.orc('send-message --to Worker -', { input: Buffer.from([0x68, 0xff, 0x69]) })
    expect(ran.code).toBe(2)
    expect(ran.err).toContain('not UTF-8')
  })

  it('accepts 102,400 bytes and not one more (C20)', async () => {
    const most = await team.orc('send-message --to Worker --title big -', { input: 'x'.repeat(102_400) })
    expect(most.code).toBe(0)
    const over = await team.orc('send-message --to Worker --title big -', { input: 'x'.repeat(102_401) })
    expect(over.code).toBe(2)
    expect(over.err).toContain('TOO_LARGE')
  })

  it('runs once per idempotency key (C25)', async () => {
    const args = 'send-message --to Worker --idempotency-key k-1 once --json'
    const [first, second] = [await team.orc(args), await team.orc(args)]
    expect(first.out).toBe(second.out)
  })

  it('runs every other built-in command', async () => {
    const status = await team.orc('update-status --agent Worker --status working Adding numbers')
    expect(status).toMatchObject({ code: 0, out: expect.stringContaining('Worker is working') })
    expect((await team.orc('list-agents')).out).toMatch(/Worker {2}working.*Adding numbers/)
    expect((await team.orc('context-status --agent Worker')).code).toBe(0)
    expect((await team.orc('query-state --query active_agents --json')).json()).toMatchObject([
      { status: 'ok' },
    ])
    expect((await team.orc('request-action --action pause-session --target Worker')).code).toBe(2)
    expect((await team.orc('request-action --action pause_session --target Worker')).out).toContain('paused')
    await team.orc('request-action --action resume_session --target Worker')
  })

  it('shows each recipient of a broadcast', async () => {
    const ran = await team.orc(['send-message', '--from', 'Spy', '--to', '*', 'hello'])
    expect(ran.code).toBe(0)
    expect(ran.out).toContain('blocked: Master: spies do not write to masters')
    expect(ran.out).toMatch(/delivered: msg_\d+, in the mailbox of Worker/)
  })

  it('refuses an unknown option and sends nothing', async () => {
    const before = await team.mailbox('Worker')
    for (const [args, said] of [
      ['send-message --to Worker --priorty urgent hi', 'Did you mean --priority?'],
      ['send-message --to Worker --colour red hi', 'has no option --colour'],
      ['send-message --to Worker --no-ack hi', 'has no option --no-ack'],
      ['note-measurement --unti m 12', 'Did you mean --unit?'],
      ['note-measurement 12', '--unit is missing'],
      ['update-status --curent-task x', 'Did you mean --current-task?'],
    ] as const) {
      expect(await team.orc(args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(said) })
    }
    expect(await team.mailbox('Worker')).toEqual(before)
  })

  it('accepts field names with dashes and underscores, in any case (S0.4)', async () => {
    for (const name of ['in-reply-to', 'in_reply_to', 'In-Reply_To']) {
      const ran = await team.orc(['send-message', '--to', 'Worker', `--${name}`, 'msg_1', 'answer'])
      expect(ran).toMatchObject({ code: 0, err: '' })
    }
    const twice = await team.orc('send-message --to Worker --in-reply-to msg_1 --in_reply_to msg_2 hi')
    expect(twice.err).toContain('is given twice')
  })

  it('shows answers without repeating the query, and no raw JSON for known shapes', async () => {
    const status = await team.orc('update-status --agent Spy --status idle')
    expect(status.out).toBe('Spy is idle\n')
    expect((await team.orc('query-mailbox --agent Worker --filter all')).out).not.toMatch(/^(agent|filter):/m)
    const { out } = await team.orc('query-state --query global_status')
    expect(out).toMatch(/Worker {2}.*\d+ waiting/)
    expect(out).toContain('service: store sqlite')
    expect(out).not.toMatch(/[{}[\]]/)
  })

  it('knows command types that an application adds (S0.16, S1.23)', async () => {
    const ran = await team.orc('note-measurement --unit m 12')
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('noted 12 m') })
    const help = await team.orc('note-measurement --help')
    expect(help.out).toContain('--unit m|kg')
    expect(help.out).toContain('orc note-measurement --unit m 12')
  })

  it('shows such a type in help, in the prompt and in scans while the service runs (S0.16)', async () => {
    expect((await team.orc('help')).out).toContain('  note-measurement ')
    const [overview] = (await team.orc('help --json')).json() as { commands: { name: string }[] }[]
    expect(overview!.commands.map(({ name }) => name)).toContain('note-measurement')
    expect((await team.orc('prompt worker')).out).toContain('note_measurement')
    expect((await team.orc('prompt Worker --json')).json()).toMatchObject([{ agent: 'Worker' }])
    const input = '<orc-command name="note_measurement" size="3">12</orc-command>'
    expect((await team.orc('scan --json', { input })).json()).toMatchObject([
      { ok: true, type: 'note_measurement', fields: { reading: '12' } },
    ])
    expect((await team.orc('scan', { input })).out).toMatch(
      /ignored: size\n.*would refuse it: unit is missing/,
    )
    const env = { ORC_URL: 'http://127.0.0.1:9' }
    expect(await team.orc('help', { env })).toMatchObject({ code: 0, err: '' })
    expect((await team.orc('scan --json', { input, env })).json()).toMatchObject([
      { code: 'UNKNOWN_COMMAND' },
    ])
  })

  it('reads the commands from service.json, or from the registry without one', async () => {
    const noted = JSON.parse(readFileSync(join(team.state, 'service.json'), 'utf8'))
    expect(noted.commands).toEqual(shellShapes([...createRegistry().all(), measure as CommandDefinition]))
    const file = join(team.state, 'service.json')
    const { commands: _, ...older } = noted
    writeFileSync(file, JSON.stringify(older))
    try {
      expect(await team.orc('send-message --to Worker hello')).toMatchObject({ code: 0, err: '' })
      expect(await team.orc('note-measurement --unit m 12')).toMatchObject({ code: 0, err: '' })
      expect((await team.orc('send-message --to Worker --titel x hello')).err).toContain('--title?')
    } finally {
      writeFileSync(file, JSON.stringify(noted))
    }
  })

  it('uses the first line of the text as the title of orc send', async () => {
    const long = 'a'.repeat(100)
    expect(await team.orc(['send', 'Worker', `\n${long}\nmore`])).toMatchObject({ code: 0 })
    expect((await team.mailbox('Worker')).at(-1)).toMatchObject({ title: 'a'.repeat(80) })
  })
})

describe('the exit code of a command', () => {
  it.each([
    [
      '2 for a parameter that does not fit',
      'update-status --agent Worker --status sleeping',
      2,
      'INVALID_COMMAND',
    ],
    [
      '3 for what a rule forbids (S1.12)',
      'send-message --from Spy --to Master hi',
      3,
      'blocked: spies do not write',
    ],
    ['4 for what a person is asked', 'send-message --from Worker --to Spy hi', 4, 'held: req_'],
    [
      '7 for an unknown recipient, with the valid names (S0.15)',
      'send-message --to Wroker hi',
      7,
      'Master, Worker, Spy',
    ],
  ])('is %s', async (_, args, code, said) => {
    const ran = await team.orc(args)
    expect(ran).toMatchObject({ code, out: '' })
    expect(ran.err).toContain(said)
    const json = await team.orc(`${args} --json`)
    expect(json).toMatchObject({ code, err: '' })
    expect(json.json()).toHaveLength(1)
  })

  it('is 6 when the rate is exceeded, with when to try again (C18)', async () => {
    const slow = createTeamFolder('agents: { A: {}, B: {} }\nlimits: { rate: { per_minute: 1, burst: 1 } }\n')
    try {
      await slow.start()
      const env = { ORC_TOKEN: await slow.token('A') }
      await slow.orc('send-message --to B one', { env })
      const ran = await slow.orc('send-message --to B two', { env })
      expect(ran).toMatchObject({ code: 6, err: expect.stringMatching(/try again in \d+ s/) })
    } finally {
      await slow.close()
    }
  })
})

describe('a mistake on the command line', () => {
  it.each([
    ['an unknown command, with what was meant', 'sned-message --to Worker hi', 'Did you mean send-message?'],
    ['an option without its value', 'send-message --to', '--to needs a value'],
    ['an option with an option for its value', 'send-message --to --title x', '--to needs a value'],
    ['an option that is there twice', 'send-message --to A --to B hi', '--to is given twice'],
    ['a short option that is none', 'send-message -t A hi', 'Unknown option "-t"'],
    ['text for a command that takes none', 'list-agents please', 'takes no text'],
    ['text that is there twice', 'send-message --to A --content x y', 'given twice'],
    ['a token among the arguments', 'send-message --token abc --to A hi', 'not accepted on the command line'],
    ['a name that every object has', 'constructor', 'There is no command "constructor"'],
    [
      'an idempotency key with a line end',
      'send-message --idempotency-key=a\r\nX:1 --to A hi',
      'idempotency key is not valid',
    ],
  ])('is reported: %s', async (_, args, said) => {
    const ran = await team.orc(args)
    expect(ran.code).toBe(2)
    expect(ran.err).toContain(said)
    expect(ran.err).toContain('hint:')
  })

  it('is reported as JSON with --json', async () => {
    const ran = await team.orc('sned-message --json')
    expect(ran.json()).toMatchObject([
      { status: 'error', code: 'USAGE', hint: expect.stringContaining('send-message') },
    ])
  })
})

describe('the sender of a command (C3)', () => {
  it('is the agent whose token is in ORC_TOKEN', async () => {
    const env = { ORC_TOKEN: await team.token('Master') }
    await team.orc('send-message --to Worker hi', { env })
    expect((await team.mailbox('Worker')).at(-1)).toMatchObject({ from: 'Master' })
  })

  it('cannot be another agent', async () => {
    const env = { ORC_TOKEN: await team.token('Worker') }
    await team.fails('send-message --from Master --to Spy forged', 8, 'You are Worker, not Master', { env })
    expect((await team.mailbox('Spy')).map(({ content }) => content)).not.toContain('forged')
  })

  it('is not the operator if ORC_TOKEN is empty or wrong', async () => {
    expect((await team.orc('send-message --to Worker hi', { env: { ORC_TOKEN: '' } })).code).toBe(8)
    const wrong = await team.orc('send-message --to Worker hi', { env: { ORC_TOKEN: 'orct_wrong' } })
    expect(wrong).toMatchObject({ code: 8, err: expect.stringContaining('UNAUTHENTICATED') })
    expect(wrong.err).toContain('hint: ORC_TOKEN')
    expect(wrong.err).not.toContain('Authorization')
    const status = await team.orc('status --json', { env: { ORC_TOKEN: 'orct_wrong' } })
    expect(status.json()).toMatchObject([{ hint: expect.stringContaining('ORC_TOKEN') }])
  })
})

describe('mailbox-check', () => {
  it('prints new messages and then acknowledges them (C1)', async () => {
    const env = { ORC_TOKEN: await team.token('Spy') }
    await team.orc('send-message --to Spy --title Hello first')
    const kept = await team.orc('mailbox-check --no-ack', { env })
    expect(kept.out).toContain('first')
    expect((await team.mailbox('Spy')).at(-1)?.delivery).toBe('written')
    await team.orc('send-message --to Spy second')
    const checked = await team.orc('mailbox-check', { env })
    expect(checked).toMatchObject({ code: 0, out: expect.stringContaining('second') })
    expect((await team.mailbox('Spy')).at(-1)?.delivery).toBe('read')
    expect((await team.orc('mailbox-check', { env })).out).toContain('No new messages')
  })

  it('leaves everything unread if its output has no reader', async () => {
    const env = { ORC_TOKEN: await team.token('Spy') }
    await team.orc('send-message --to Spy nobody-reads-this')
    const { child, ended } = team.begin('mailbox-check --json', { env })
    child.stdout.destroy()
    expect(await ended).toMatchObject({ code: 0, err: '' })
    expect((await team.mailbox('Spy')).at(-1)?.delivery).toBe('written')
  })
})
