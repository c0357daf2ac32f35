/** Text into a real pane: exact, whole, alone. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Session } from '../../../src/runtimes/runtime.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { turnOf } from '../conformance.ts'
import { openTmuxFixture, type TmuxFixture } from '../tmux-fixture.ts'

let fixture: TmuxFixture
let port: RecordingPort
beforeEach(async () => {
  fixture = await openTmuxFixture()
  port = createRecordingPort()
})
afterEach(() => fixture.close())

async function start(over: Record<string, unknown> = {}): Promise<Session> {
  const session = await fixture.runtime.start(
    fixture.agent({ settings: fixture.settings('alice', over) }),
    port,
  )
  await port.untilState('idle')
  return session
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const pane = () => fixture.panes().at(-1)!
const shown = (format: string) => fixture.tmux('display-message', '-p', '-t', pane(), format)

async function until(what: string, isTrue: () => boolean) {
  for (let waited = 0; !isTrue(); waited += 20) {
    if (waited > 10_000) throw new Error(`waited in vain until ${what}`)
    await pause(20)
  }
}

async function typeDraft() {
  fixture.tmux('send-keys', '-t', pane(), 'half a thought')
  await until('the draft is there', () =>
    fixture.tmux('capture-pane', '-p', '-t', pane()).includes('thought'),
  )
}

const HOSTILE: [string, string][] = [
  ['several lines', 'one\ntwo\n\n\nfive'],
  ['100 KB', 'The quick brown fox jumps over the lazy dog.\n'.repeat(2330)],
  ['a leading !', '!rm -rf /'],
  ['a leading /', '/quit'],
  ['a trailing backslash', 'and so on \\'],
  ['a file reference at its end', 'look at @src/main.ts'],
  ['tabs and emoji', 'a\tb\t👩‍👩‍👧 ünïcödé 漢字'],
  ['what tmux and shells would expand', '#{pane_id} #(touch x) $(touch y) `z` ; kill-server \' " %H ~'],
  ['the markers of control mode', '%end 1 1 1\n%exit\n%begin 1 1 1'],
]

describe('a message in a pane', () => {
  it('arrives unchanged, whatever it contains (C27)', async () => {
    const session = await start()
    for (const [number, [, text]] of HOSTILE.entries()) {
      const turn = turnOf(`msg_${number}`, text)
      const arrival = await session.deliver(turn)
      expect(arrival, HOSTILE[number]![0]).toMatchObject({ state: expect.stringMatching(/submitted|read/) })
      expect(fixture.received().at(-1)!.text, HOSTILE[number]![0]).toBe(turn.text)
      await port.until(() => session.state === 'idle')
    }
    expect(fixture.received()).toHaveLength(HOSTILE.length)
  })

  it('escapes file names for a program that would read these files', async () => {
    const session = await start({ mentions: 'anywhere' })
    const turn = turnOf('msg_1', 'look at @src/main.ts, me@example.com')
    await session.deliver(turn)
    expect(fixture.received()[0]!.text).toBe(turn.text.replaceAll('@', '\\@'))
  })

  it('can neither end its own paste nor press keys', async () => {
    const session = await start()
    const turn = turnOf('msg_1', 'before\u001b[201~\rexit 9\r\n\u0003\u0015\u009b201~\u0000after\r\nlast')
    await session.deliver(turn)
    expect(fixture.received()).toHaveLength(1)
    expect(fixture.received()[0]!.text).toContain('before[201~\nexit 9\n201~after\nlast')
  })

  it('gets its Enter after the delay that the program needs', async () => {
    const session = await start({ enter_after_ms: 150 })
    const before = Date.now()
    const arrival = await session.deliver(turnOf('msg_1', 'say hello'))
    expect(['submitted', 'read']).toContain(arrival.state)
    expect(Date.now() - before).toBeGreaterThanOrEqual(150)
    expect(shown('#{pane_input_off}')).toBe('0')
  })

  it('waits for a draft, and is not mixed with it', async () => {
    const session = await start()
    await typeDraft()
    const delivery = session.deliver(turnOf('msg_1', 'hello'))
    await pause(700)
    expect(fixture.received()).toEqual([])
    fixture.tmux('send-keys', '-t', pane(), 'Enter')
    await delivery
    expect(fixture.received().map(({ text }) => text)).toEqual([
      'half a thought',
      turnOf('msg_1', 'hello').text,
    ])
  })

  it('stays queued with the reason while the draft remains (C27)', async () => {
    const session = await start({ patience_ms: 300 })
    await typeDraft()
    const arrival = await session.deliver(turnOf('msg_1', 'hello'))
    expect(arrival).toEqual({ state: 'queued', evidence: expect.stringContaining('draft') })
    expect(fixture.received()).toEqual([])
  })

  it('reports the obstacle and its end, even after the delivery gave up', async () => {
    const session = await start({ patience_ms: 300 })
    await typeDraft()
    const turn = turnOf('msg_1', 'hello')
    expect(await session.deliver(turn)).toMatchObject({ state: 'queued' })
    expect(port.obstacles).toEqual([expect.stringContaining('draft')])
    fixture.tmux('copy-mode', '-t', pane())
    await port.until(() => port.obstacles.at(-1)?.includes('copy mode') === true)
    fixture.tmux('send-keys', '-t', pane(), '-X', 'cancel')
    await port.until(() => port.obstacles.at(-1)?.includes('draft') === true)
    fixture.tmux('send-keys', '-t', pane(), 'Enter')
    await port.until(() => port.obstacles.at(-1) === undefined)
    expect(await session.deliver(turn)).toMatchObject({ state: expect.stringMatching(/submitted|read/) })
    expect(fixture.received().map(({ text }) => text)).toEqual(['half a thought', turn.text])
  })

  it('reports no obstacle once its session was left', async () => {
    const session = await start({ patience_ms: 100 })
    await typeDraft()
    await session.deliver(turnOf('msg_1', 'hello'))
    await session.leave()
    fixture.tmux('send-keys', '-t', pane(), 'Enter')
    await pause(1200)
    expect(port.obstacles).toEqual([expect.stringContaining('draft')])
  })

  it('waits while the pane is in copy mode, and arrives afterwards', async () => {
    const session = await start()
    fixture.tmux('copy-mode', '-t', pane())
    const delivery = session.deliver(turnOf('msg_1', 'hello'))
    await pause(300)
    expect(fixture.received()).toEqual([])
    fixture.tmux('send-keys', '-t', pane(), '-X', 'cancel')
    expect(await delivery).toMatchObject({ state: expect.stringMatching(/submitted|read/) })
    expect(fixture.received()).toHaveLength(1)
  })

  it('gets its Enter even if copy mode began after the paste', async () => {
    const session = await start({ enter_after_ms: 400 })
    const delivery = session.deliver(turnOf('msg_1', 'hello'))
    await until('it is pasted', () => fixture.tmux('capture-pane', '-p', '-t', pane()).includes('END ORCHUB'))
    fixture.tmux('copy-mode', '-t', pane())
    await pause(700)
    expect(fixture.received()).toEqual([])
    fixture.tmux('send-keys', '-t', pane(), '-X', 'cancel')
    expect(await delivery).toMatchObject({ state: expect.stringMatching(/submitted|read/) })
    expect(fixture.received()).toHaveLength(1)
  })

  it('is never typed into a dialog (C27)', async () => {
    const session = await start({ patience_ms: 400 })
    await session.deliver(turnOf('msg_1', 'ask'))
    await port.untilState('waiting_input')
    const arrival = await session.deliver(turnOf('msg_2', 'hello'))
    expect(arrival).toEqual({ state: 'queued', evidence: expect.stringContaining('waiting for a person') })
    expect(fixture.received()).toHaveLength(1)
    fixture.tmux('send-keys', '-t', pane(), 'y')
    await port.untilState('idle')
    expect(fixture.received().at(-1)).toEqual({ answered: 'y' })
  })

  it('gets another Enter if the first one was lost', async () => {
    const session = await start({ env: { RECEIVER_SWALLOWS: '1' }, evidence_ms: 500 })
    const arrival = await session.deliver(turnOf('msg_1', 'hello'))
    expect(arrival.evidence).toContain('second Enter')
    expect(fixture.received().map(({ text }) => text)).toEqual([turnOf('msg_1', 'hello').text])
  })

  it('is uncertain without evidence of its arrival (C27)', async () => {
    const session = await start({ patterns: { idle: '^> $' }, evidence_ms: 300 })
    const arrival = await session.deliver(turnOf('msg_1', 'hello'))
    expect(arrival).toMatchObject({ state: 'uncertain' })
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'unknown' }])
  })

  it('counts as accepted if its echo is followed by the busy pattern', async () => {
    const session = await start({ patterns: { idle: '^> $', busy: 'working' } })
    const arrival = await session.deliver(turnOf('msg_1', 'work 300'))
    expect(arrival).toMatchObject({ state: 'submitted', evidence: expect.stringContaining('busy') })
    await port.until(() => port.arrived.length > 0)
    expect(port.arrived[0]).toMatchObject({ ids: ['msg_1'], state: 'read' })
  })

  it('waits for a program that has not enabled bracketed paste', async () => {
    const plain = fixture.settings()
    const command = [...(plain.command as string[]), '--no-brackets']
    const session = await start({ command, patience_ms: 300 })
    const arrival = await session.deliver(turnOf('msg_1', 'hello'))
    expect(arrival).toEqual({ state: 'queued', evidence: expect.stringContaining('bracketed paste') })
  })

  it('is located by its id (C25)', async () => {
    const session = await start()
    await session.deliver(turnOf('msg_1', 'hello'))
    await port.until(() => session.state === 'idle')
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
    expect(await session.locate(['msg_11'])).toMatchObject([{ at: 'absent' }])
  })

  it('leaves no text behind, in files or in tmux', async () => {
    const session = await start()
    await session.deliver(turnOf('msg_1', 'hello'))
    expect(fixture.tmux('list-buffers')).toBe('')
    const { readdirSync } = await import('node:fs')
    const files = readdirSync(fixture.agent().folder)
    expect(files.filter((name) => name.endsWith('.txt') || name.endsWith('.sh'))).toEqual([])
  })
})

describe('its role', () => {
  it('is pasted as the first turn, until which the agent is starting', async () => {
    const session = await start({ prompt: 'paste' })
    expect(fixture.received().map(({ text }) => text)).toEqual(['You are a test.'])
    expect(port.states.map(({ state }) => state)).toEqual(['idle'])
    await session.deliver(turnOf('msg_1', 'hello'))
    expect(fixture.received()).toHaveLength(2)
  })

  it('is the last argument if the settings say so', async () => {
    const command = ['sh', '-c', 'echo "told: $0"; printf "> "; read -r line']
    await start({ command, prompt: 'argument' })
    expect(fixture.tmux('capture-pane', '-p', '-t', pane())).toContain('told: You are a test.')
  })
})

describe('a turn of answers only', () => {
  it('counts as accepted when the prompt appears below it', async () => {
    const session = await start()
    const text = '[ORCHESTRATOR RESPONSE]\nStatus: ok\n[END ORCHESTRATOR RESPONSE]'
    expect(await session.deliver({ text, ids: [] })).toMatchObject({
      state: expect.stringMatching(/submitted|read/),
    })
    expect(fixture.received()[0]!.text).toBe(text)
  })
})

describe('an interrupt', () => {
  it('is reported as successful only when the prompt is back', async () => {
    const session = await start({ interrupt: ['Escape'] })
    await session.deliver(turnOf('msg_1', 'work 600'))
    await port.untilState('busy')
    expect(await session.interrupt()).toEqual({ stopped: true, evidence: 'its prompt is back' })
  })
})

describe('a person at the keyboard', () => {
  it('does not get their text mixed with ours, and can type afterwards', async () => {
    const session = await start()
    const person = await fixture.attach()
    person.type('half ')
    await until('the draft is there', () => fixture.tmux('capture-pane', '-p', '-t', pane()).includes('half'))
    const delivery = session.deliver(turnOf('msg_1', 'hello'))
    person.type('a thought\r')
    expect(await delivery).toMatchObject({ state: expect.stringMatching(/submitted|read/) })
    expect(fixture.received().map(({ text }) => text)).toEqual([
      'half a thought',
      turnOf('msg_1', 'hello').text,
    ])
    expect(shown('#{pane_input_off}')).toBe('0')
    person.type('and on\r')
    await until('they are heard', () => fixture.received().length === 3)
    expect(fixture.received()[2]!.text).toBe('and on')
  })

  it('who only watches blocks nothing', async () => {
    const session = await start()
    await fixture.attach()
    const arrival = await session.deliver(turnOf('msg_1', 'hello'))
    expect(['submitted', 'read']).toContain(arrival.state)
    expect(shown('#{pane_input_off}')).toBe('0')
  })

  it('can type all the time, and nothing is mixed or lost', async () => {
    const session = await start({ patience_ms: 200 })
    const person = await fixture.attach()
    const keys = 'abcdefghij'
    let typed = ''
    const typing = (async () => {
      for (let n = 0; n < 40; n++) {
        const key = n % 10 === 9 ? '\r' : keys[n % 10]!
        person.type(key)
        typed += key
        await pause(30)
      }
    })()
    let arrival = await session.deliver(turnOf('msg_1', 'hello'))
    await typing
    for (let n = 0; arrival.state === 'queued' && n < 40; n++) {
      await pause(100)
      arrival = await session.deliver(turnOf('msg_1', 'hello'))
    }
    expect(['submitted', 'read']).toContain(arrival.state)
    const texts = fixture.received().map(({ text }) => text!)
    expect(texts.filter((text) => text.includes('ORCHUB'))).toEqual([turnOf('msg_1', 'hello').text])
    expect(texts.filter((text) => !text.includes('ORCHUB')).join('\r')).toBe(typed.slice(0, -1))
  })
})
