import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { AgentName } from '../../scripts/install-agents.ts'
import { decide } from '../harness/engine.ts'
import { HOSTILE_TEXTS } from './harness/hostile-texts.ts'
import { createModelScript } from './harness/model-script.ts'
import { openTeam, type RealTeam } from './harness/team.ts'

interface Trait {
  readonly program: AgentName
  /**
   * `api`: what a person types stands beside it. `paste`: it has to wait for the input box. `hook`: the same, unless a
   * turn ends at that moment.
   */
  readonly wayIn: 'api' | 'hook' | 'paste'
  /** Text in the pane while the program asks for permission. */
  readonly dialog: RegExp
  /** Path of a file that the program asks one question about. */
  readonly asksAbout: '.' | '..'
  /** How `@name` and `user@name` arrive, so that the program reads no file of that name. */
  readonly mention: { readonly alone: string; readonly within: string }
}

const PLAIN = { alone: '@', within: '@' }
const CLAUDE = { alone: '\\@', within: '@' }
const GEMINI = { alone: '\\@', within: '\\@' }

const TRAITS: Trait[] = [
  {
    program: 'claude-code',
    wayIn: 'hook',
    dialog: /Do you want to proceed/,
    asksAbout: '..',
    mention: CLAUDE,
  },
  {
    program: 'claude-code-2.1.197',
    wayIn: 'hook',
    dialog: /Do you want to proceed/,
    asksAbout: '..',
    mention: CLAUDE,
  },
  { program: 'codex', wayIn: 'api', dialog: /Would you like to run/, asksAbout: '..', mention: PLAIN },
  { program: 'gemini', wayIn: 'paste', dialog: /Allow once/, asksAbout: '..', mention: GEMINI },
  { program: 'opencode', wayIn: 'api', dialog: /Permission required/, asksAbout: '.', mention: PLAIN },
]

/** Time in which a forbidden effect would show. */
const LONG_ENOUGH_MS = 1500

describe.each(TRAITS)('$program in a team', ({ program, wayIn, dialog, asksAbout, mention }) => {
  const script = createModelScript()
  let team: RealTeam
  let ran = 0

  beforeAll(async () => {
    team = await openTeam({ programs: { Alice: program, Bob: program }, play: script.play })
    await Promise.all([team.idle('Alice'), team.idle('Bob')])
  })
  afterAll(async () => {
    await team?.close()
  })

  const alice = () => team.received('Alice')

  /** Each message is in the conversation exactly once. */
  function expectOnce(...ids: string[]) {
    for (const id of ids) expect(alice().times(id), `${id}: ${alice().history(id)}`).toBe(1)
  }

  /** Alice wants to run a command that her program asks a person about. */
  async function openDialog() {
    const file = `ran-${++ran}`
    const from = team.entries.length
    script.answer(`make ${file}`, {
      text: 'I need a file.',
      toolCalls: [{ shell: `touch ${join(asksAbout, file)}`, escalated: true }],
    })
    const id = await team.send('Alice', `make ${file}`)
    const asked = await team.until('a person is asked', () => team.audited('human.asked', from)[0])
    await team.becomes('Alice', 'waiting_input')
    await team.until('the dialog is shown', async () => dialog.test(await team.screen('Alice')))
    const path = join(team.folder, 'work', 'Alice', asksAbout, file)
    return { id, from, request: asked.data!.request_id as string, hasRun: () => existsSync(path) }
  }

  it('holds a message until the end of an undisturbed turn, while other agents do not wait (C2)', async () => {
    const goOn = script.hold('think it over')
    const first = await team.send('Alice', 'think it over')
    const call = await alice().message(first)
    const second = await team.send('Alice', 'and then this')
    const toBob = await team.send('Bob', 'you are free')
    await team.arrives(toBob)
    expect(await team.deliveryOf(second)).toBe('queued')
    expect(team.state('Alice')).toBe('busy')
    goOn({ text: 'I have thought it over.' })
    await team.arrives(second)
    expect(call.state).toBe('answered')
    expect((await alice().message(second)).body).toContain('I have thought it over.')
    await team.idle('Alice')
    expectOnce(first, second)
  })

  it('delivers waiting messages as one turn, in order (C2)', async () => {
    const goOn = script.hold('collect the mail')
    await alice().message(await team.send('Alice', 'collect the mail'))
    const ids = [
      await team.send('Alice', 'one of three'),
      await team.send('Alice', 'two of three'),
      await team.send('Alice', 'three of three'),
    ]
    goOn({ text: 'Collected.' })
    for (const id of ids) await team.arrives(id)
    const { userText } = (await alice().message(ids[0]!)).request!
    const places = ids.map((id) => userText.indexOf(`[ORCHUB MESSAGE ${id}]`))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(places[0]).toBeGreaterThanOrEqual(0)
    await team.idle('Alice')
    expectOnce(...ids)
  })

  it('announces a message of high priority within the turn, and delivers it afterwards (C2)', async () => {
    const goOn = script.hold('look at the team')
    await alice().message(await team.send('Alice', 'look at the team'))
    await team.becomes('Alice', 'busy')
    const notice = vi.spyOn(team.orchub.engine.sessions.session('Alice')!, 'notice')
    const high = await team.send('Alice', 'this matters', { priority: 'high' })
    await team.until('it is announced', () => notice.mock.settledResults[0]?.type === 'fulfilled')
    notice.mockRestore()
    expect(await team.deliveryOf(high)).toBe('queued')
    goOn({ text: 'I look.', toolCalls: [{ mcp: 'list_agents', input: {} }] })
    const noticed = await alice().text('[ORCHUB NOTICE] A high-priority message from operator')
    expect(noticed.body).not.toContain(`[ORCHUB MESSAGE ${high}]`)
    await team.arrives(high)
    await team.idle('Alice')
    expectOnce(high)
  })

  it('interrupts for an urgent message, delivers it, and records the stop (C2, ask 11)', async () => {
    const from = team.entries.length
    script.hold('count to a million')
    const first = await team.send('Alice', 'count to a million')
    const call = await alice().message(first)
    const urgent = await team.send('Alice', 'stop at once', { priority: 'urgent' })
    await team.arrives(urgent)
    expect(call.state).toBe('aborted')
    expect(team.audited('session.interrupted', from)).toMatchObject([{ actor: 'operator', subject: 'Alice' }])
    await team.idle('Alice')
    expectOnce(first, urgent)
  })

  it('types nothing into a dialog; a verdict from elsewhere answers it, then the message arrives (C9)', async () => {
    const { request, hasRun } = await openDialog()
    const waiting = await team.send('Alice', 'while you were asking')
    await sleep(LONG_ENOUGH_MS)
    expect(await team.deliveryOf(waiting)).toBe('queued')
    expect(team.state('Alice')).toBe('waiting_input')
    expect(await team.screen('Alice')).toMatch(dialog)
    expect(hasRun()).toBe(false)
    await decide(team.orchub.engine, { kind: 'operator' }, request, { decision: 'approve' })
    await team.until('the command has run', hasRun)
    await team.arrives(waiting)
    await team.idle('Alice')
    expectOnce(waiting)
  })

  it('ends a turn that waits at a dialog for an urgent message, and closes its request (C2, ask 11)', async () => {
    const { from, request, hasRun } = await openDialog()
    const urgent = await team.send('Alice', 'leave that dialog', { priority: 'urgent' })
    await team.arrives(urgent)
    const stop = await team.until('the stop is on record', () => team.audited('session.interrupted', from)[0])
    expect(stop).toMatchObject({ actor: 'operator', subject: 'Alice' })
    const closed = await team.until('the request is closed', () => team.audited('human.withdrawn', from)[0])
    expect(closed.data).toMatchObject({ request_id: request })
    expect(hasRun()).toBe(false)
    await team.idle('Alice')
    expectOnce(urgent)
  })

  it('reports a denial with its reason to the agent, and runs nothing (C9)', async () => {
    const { request, hasRun } = await openDialog()
    await decide(team.orchub.engine, { kind: 'operator' }, request, {
      ...{ decision: 'reject', comment: 'not on a Friday' },
    })
    await team.idle('Alice')
    const next = await team.send('Alice', 'what now?')
    await team.arrives(next)
    await alice().text('not on a Friday')
    expect(hasRun()).toBe(false)
    await team.idle('Alice')
  })

  it('closes the request by itself when the person answers in the pane (C9)', async () => {
    const { from, request, hasRun } = await openDialog()
    const waiting = await team.send('Alice', 'after your own answer')
    const person = await team.attachTerminal('Alice')
    await person.shows(dialog)
    // Some programs take no key in the first moment of a dialog.
    await sleep(LONG_ENOUGH_MS)
    await person.press('Enter')
    await team.until('the command has run', hasRun)
    const closed = await team.until('the request is closed', () => team.audited('human.withdrawn', from)[0])
    expect(closed.data).toMatchObject({ request_id: request })
    await team.arrives(waiting)
    await team.idle('Alice')
    await person.close()
    expectOnce(waiting)
  })

  it.each([
    ['sends it', 'Enter'],
    ['clears it', 'C-u'],
  ])('never mixes a message with the text of a typing person, who then %s (ask 4)', async (_, key) => {
    const draft = `a half-typed thought before ${key}`
    const person = await team.attachTerminal('Alice')
    await person.type(draft)
    await person.shows(new RegExp(draft))
    const id = await team.send('Alice', 'beside your draft')
    if (wayIn === 'api') await team.arrives(id)
    else await sleep(LONG_ENOUGH_MS)
    if (wayIn === 'paste') expect(await team.deliveryOf(id)).not.toMatch(/submitted|read/)
    await person.shows(new RegExp(draft))
    await person.press(key)
    await team.arrives(id)
    if (key === 'Enter') await alice().text(draft)
    expect((await alice().message(id)).request!.prompt).not.toContain('half-typed')
    await team.idle('Alice')
    await person.close()
    const sent = team.model.calls('Alice').filter((call) => call.request!.userText.includes(draft))
    expect(sent.map((call) => call.request!.userText)).toEqual(key === 'Enter' ? [draft] : [])
    expectOnce(id)
  })

  // Gemini takes half a minute to draw so long a line; that it takes it is tried in its own suite.
  const texts = HOSTILE_TEXTS.filter(({ name }) => program !== 'gemini' || name !== '100 KB in one line')

  it.each(texts)('delivers $name once and exactly (C2)', async ({ content, carried, typed }) => {
    await team.idle('Alice')
    const id = await team.send('Alice', content, { title: 'hostile' })
    await team.arrives(id)
    const { userText } = (await alice().message(id)).request!
    const frame = (text: string) =>
      `[ORCHUB MESSAGE ${id}]\nFrom: operator\nTitle: hostile\nPriority: normal\n\n${text}\n\n[END ORCHUB MESSAGE ${id}]`
    const expected = [carried ?? content, ...(typed === undefined || wayIn === 'api' ? [] : [typed])]
    const named = expected.map((text) => frame(text.replace(' @', ` ${mention.alone}`)))
    expect(named).toContain(userText)
    await team.idle('Alice')
    expectOnce(id)
  })

  describe('a message that names a file', () => {
    const files = [
      'plain.txt',
      'quoted.txt',
      'bracketed.txt',
      'after-a-stop.txt',
      'two words.txt',
      'in a/folder.txt',
    ]
    const secret = (name: string) => `secret of ${name}`
    let folder: string

    beforeAll(() => {
      folder = join(team.folder, 'work', 'Alice')
      mkdirSync(join(folder, 'in a'), { recursive: true })
      for (const name of [...files, 'titled.txt', 'address.txt', 'behind.txt', '../outside.txt'])
        writeFileSync(join(folder, name), secret(name))
    })

    /** A link chip, which one program removes before it looks for file names. */
    const chip = '@[x](https://docs.google.com/document/d/aaaaaaaaaaaaaaaaaaaa)'
    const named = [
      ['alone', '@plain.txt'],
      ['in quotes', '"@quoted.txt"'],
      ['in brackets', '(@bracketed.txt)'],
      ['after a stop', '。@after-a-stop.txt'],
      ['with a space in it', '@"two words.txt"'],
      ['as a folder', '@"in a/"'],
      ['behind something else', `${chip}@behind.txt`],
      ['by its whole path', '@$folder/../outside.txt'],
      ['by a way out', '@../outside.txt'],
      ['behind a blank of another kind', '@\u00a0/../plain.txt'],
      ['behind a wide blank', '@\u3000/../plain.txt'],
      ['in an address', 'somebody@address.txt'],
    ] as const

    it.each(named)('does not make the program read it, %s', async (_, written) => {
      await team.idle('Alice')
      const from = team.model.calls('Alice').length
      const content = `look at ${written.replace('$folder', folder)} please`
      const id = await team.send('Alice', content, { title: 'see @titled.txt' })
      await team.arrives(id)
      const { userText } = (await alice().message(id)).request!
      await team.idle('Alice')
      for (const { body } of team.model.calls('Alice').slice(from)) expect(body).not.toContain('secret of')
      expect(userText).toContain(`Title: see ${mention.alone}titled.txt`)
      if (written.startsWith('@') && !written.startsWith('@[') && !/[\u00a0\u3000]/.test(written))
        expect(userText).toContain(content.replace('@', mention.alone))
      if (written.startsWith('s')) expect(userText).toContain(content.replace('@', mention.within))
    })

    it.each([
      ['a picture', '$folder/../outside.png /x'],
      ['a picture in quotes', '"$folder/../outside.png" /x'],
      ['a picture with a backslash', '$folder/../outside.p\\ng /x'],
      ['a picture at the end of a line', '$folder/../outside.png\n /x'],
      ['a picture before a tab', '$folder/../outside.png\t /x'],
      ['pictures side by side', '$folder/../outside.png $folder/../outside.png'],
    ])('does not make the program look at %s', async (_, written) => {
      const dot =
        'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
      writeFileSync(join(folder, '../outside.png'), Buffer.from(dot, 'base64'))
      await team.idle('Alice')
      const from = team.model.calls('Alice').length
      const content = `look at ${written.replaceAll('$folder', folder)} please`
      const id = await team.send('Alice', content)
      await team.arrives(id)
      const { userText } = (await alice().message(id)).request!
      await team.idle('Alice')
      for (const { body } of team.model.calls('Alice').slice(from)) expect(body).not.toContain('iVBORw0KGgo')
      const blanks = (text: string) => text.replace(/\s+/g, ' ')
      expect(blanks(userText)).toContain(blanks(content))
    })

    it.runIf(wayIn === 'hook')('does not make it read the file at the end of a turn either', async () => {
      const goOn = script.hold('wait for a name')
      await alice().message(await team.send('Alice', 'wait for a name'))
      const person = await team.attachTerminal('Alice')
      await person.type('half-typed')
      await person.shows(/half-typed/)
      const from = team.model.calls('Alice').length
      const id = await team.send('Alice', 'look at @plain.txt please')
      goOn({ text: 'I waited.' })
      await team.arrives(id)
      await alice().message(id)
      await team.idle('Alice')
      for (const { body } of team.model.calls('Alice').slice(from)) expect(body).not.toContain('secret of')
      await person.press('C-u')
      // The key may still be on its way to the program, and would be lost with the terminal.
      await team.until('the draft is gone', async () => !/❯\s*half-typed/.test(await person.screen()))
      await person.close()
    })
  })

  it('executes a command once that is sent by MCP and in the text (C25)', async () => {
    const from = team.entries.length
    const fields = { to: 'Bob', title: 'said twice', content: 'the same words' }
    script.answer('say it both ways', {
      text: `I tell Bob.\n<orc-command name="send_message" to="Bob" title="said twice">the same words</orc-command>`,
      toolCalls: [{ mcp: 'send_message', input: fields }],
    })
    await team.arrives(await team.send('Alice', 'say it both ways'))
    await team.until('the second is recognized', () => team.audited('command.repeated', from)[0])
    await team.idle('Alice')
    const mails = (await team.mailOf('Bob')).filter((mail) => mail.title === 'said twice')
    expect(mails).toMatchObject([{ from: 'Alice', content: 'the same words' }])
    await team.arrives(mails[0]!.id)
    expect(team.received('Bob').times(mails[0]!.id)).toBe(1)
  })

  it('reports the context usage (C26)', async () => {
    expect(await team.order('context_status', { agent: 'Alice' })).toMatchObject({
      status: 'ok',
      details: { tokens: expect.any(Number), window: expect.any(Number), percent: expect.any(Number) },
    })
  })

  it('holds deliveries while an agent is paused, and interrupts nothing (S1.24)', async () => {
    const goOn = script.hold('finish this first')
    const call = await alice().message(await team.send('Alice', 'finish this first'))
    await team.order('request_action', { action: 'pause_session', target: 'Alice' })
    const id = await team.send('Alice', 'when you are back')
    goOn({ text: 'Finished.' })
    await team.idle('Alice')
    await sleep(LONG_ENOUGH_MS / 3)
    expect(call.state).toBe('answered')
    expect(await team.deliveryOf(id)).toBe('queued')
    await team.order('request_action', { action: 'resume_session', target: 'Alice' })
    await team.arrives(id)
    await team.idle('Alice')
    expectOnce(id)
  })

  it('leaves nothing of a stopped agent behind, and resumes its conversation (S1.24, ask 10)', async () => {
    const remembered = await team.send('Alice', 'the word is xylophone')
    await team.arrives(remembered)
    await team.idle('Alice')
    await team.order('request_action', { action: 'terminate_agent', target: 'Alice' })
    await team.until('nothing of Alice runs', async () => (await team.processes('Alice')).length === 0)
    const id = await team.send('Alice', 'which word was it?')
    await team.order('request_action', { action: 'spawn_agent', target: 'Alice' })
    await team.arrives(id)
    const { body } = await alice().message(id)
    expect(body).toContain('the word is xylophone')
    await team.idle('Alice')
    expectOnce(remembered, id)
  })

  it('starts a new conversation with the role when an agent is reset (S1.24, ask 15)', async () => {
    await team.order('request_action', { action: 'reset_session', target: 'Alice' })
    const id = await team.send('Alice', 'a fresh start')
    await team.arrives(id)
    const { body } = await alice().message(id)
    expect(body).toContain('You are Alice, an agent in a team.')
    expect(body).not.toContain('xylophone')
    await team.idle('Alice')
    expectOnce(id)
  })
})
