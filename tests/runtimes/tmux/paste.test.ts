/** Races between snapshot, paste, Enter and evidence: each test holds one gap open and makes something happen in it. */

import { readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SessionState } from '../../../src/base/agent.ts'
import type { PasteOptions } from '../../../src/programs/program.ts'
import type { DeliveryResult } from '../../../src/runtimes/runtime.ts'
import { IN_SESSION } from '../../../src/runtimes/tmux/connection.ts'
import { ControlLost } from '../../../src/runtimes/tmux/control.ts'
import { createPane, type TmuxPane } from '../../../src/runtimes/tmux/pane.ts'
import { readPendingInput } from '../../../src/runtimes/tmux/pending-input.ts'
import { openTmuxServer, serverEnvironment, type TmuxServer } from '../../../src/runtimes/tmux/server.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { turnOf } from '../conformance.ts'
import { openTmuxFixture, type TmuxFixture } from '../tmux-fixture.ts'

let fixture: TmuxFixture
let server: TmuxServer
let pane: TmuxPane
const turn = turnOf('msg_1', 'hello')

const open = (id: string, over: Partial<Parameters<typeof createPane>[0]> = {}) =>
  createPane({
    ...{ server, clock: REAL_CLOCK, log: QUIET_LOG, id, pid: 0, folder: fixture.folder, isFound: false },
    ...over,
  })

beforeEach(async () => {
  fixture = await openTmuxFixture()
  server = openTmuxServer({
    ...{ socket: fixture.socket, command: 'tmux', env: serverEnvironment(process.env) },
    ...{ clock: REAL_CLOCK, log: QUIET_LOG },
  })
  await server.connect()
  const command = fixture.settings().command as string[]
  const [opened] = await server.run([
    ...['new-window', '-d', '-t', IN_SESSION, '-P', '-F', '#{pane_id}', ...command],
  ])
  pane = open(opened!.lines[0]!)
  await expect.poll(async () => (await pane.screen()).lines[0]).toBe('>')
})
afterEach(async () => {
  await server.close()
  await fixture.close()
})

const { promise: never } = Promise.withResolvers<DeliveryResult>()
const manner = (over: Partial<PasteOptions> = {}): PasteOptions => ({
  state: () => 'idle',
  inputBox: () => 'empty',
  enterAfterMs: 0,
  evidence: never,
  evidenceMs: 200,
  patienceMs: 1000,
  ...over,
})

const draft: Pick<PasteOptions, 'state' | 'inputBox'> = { state: () => 'idle', inputBox: () => 'draft' }

/** Runs once, between the snapshot and the paste. */
function afterSnapshot(what: () => void): PasteOptions['inputBox'] {
  let isDone = false
  return () => {
    if (!isDone) what()
    isDone = true
    return 'empty'
  }
}

const captured = () => fixture.tmux('capture-pane', '-p', '-t', pane.id)
const inputOff = () => fixture.tmux('display-message', '-p', '-t', pane.id, '#{pane_input_off}')

describe('a text on its way into a pane', () => {
  const taken = Promise.resolve<DeliveryResult>({ state: 'submitted', evidence: 'it said so' })
  const buffers = () => fixture.tmux('list-buffers', '-F', '#{buffer_name}').split('\n').filter(Boolean)
  const files = () => readdirSync(fixture.folder).filter((name) => name.startsWith('orc-'))
  const shown = async () => (await pane.screen()).lines.filter((line) => line !== '')

  it('leaves no buffer and no file behind when the guard refuses', async () => {
    const arrival = await pane.paste(turn, manner({ inputBox: () => 'draft', patienceMs: 0 }))
    expect(arrival).toMatchObject({ state: 'queued' })
    pane.close()
    expect(buffers()).toEqual([])
    expect(files()).toEqual([])
    expect(await shown()).toEqual(['>'])
  })

  it('is loaded again when the pane changed right before the paste', async () => {
    const inputBox = afterSnapshot(() => {
      fixture.tmux('copy-mode', '-t', pane.id)
      setTimeout(() => fixture.tmux('send-keys', '-t', pane.id, '-X', 'cancel'), 100)
    })
    expect(await pane.paste(turn, manner({ inputBox, evidence: taken }))).toMatchObject({
      state: 'submitted',
    })
    await expect.poll(() => fixture.received().map(({ text }) => text)).toEqual([turn.text])
    expect(buffers()).toEqual([])
    expect(files()).toEqual([])
  })
})

describe('between the snapshot and the paste', () => {
  it.each([
    ['enters copy mode', 'copy mode', ['copy-mode'], []],
    ['has its input switched off', 'switched off', ['select-pane', '-d'], []],
    ['is synchronized', 'synchronized', ['set-option', '-w'], ['synchronize-panes', 'on']],
  ])('a pane that %s is not written to', async (_, reason, command, values) => {
    const inputBox = afterSnapshot(() => fixture.tmux(...command, '-t', pane.id, ...values))
    const arrival = await pane.paste(turn, manner({ inputBox }))
    expect(arrival).toEqual({ state: 'queued', evidence: expect.stringContaining(reason) })
    expect(fixture.received()).toEqual([])
    expect(fixture.tmux('list-buffers')).toBe('')
  })

  it('a pane that is closed is not written to', async () => {
    const inputBox = afterSnapshot(() => fixture.tmux('kill-pane', '-t', pane.id))
    const arrival = await pane.paste(turn, manner({ inputBox }))
    expect(arrival).toMatchObject({ state: 'queued' })
  })

  it('a person who attaches causes another check', async () => {
    let looks = 0
    const inputBox = () => {
      looks += 1
      return 'empty' as const
    }
    await fixture.attach()
    const arrival = await pane.paste(turn, manner({ inputBox, patienceMs: 8000 }))
    expect(arrival.state).toBe('uncertain')
    expect(looks).toBeGreaterThan(1)
    expect(fixture.received()).toHaveLength(1)
    expect(inputOff()).toBe('0')
  })
})

describe('a person who takes over the pane in the control room', () => {
  /** Leaves our text pasted without its Enter, because the program turned busy. */
  async function leaveUnsent() {
    let state: SessionState = 'idle'
    setTimeout(() => (state = 'busy'), 100)
    await pane.paste(turn, manner({ enterAfterMs: 200, state: () => state }))
    expect(pane.pendingText?.()).toBe('[END ORCHUB MESSAGE msg_1]')
  }

  it('right after the snapshot never gets our text mixed into theirs', async () => {
    const inputBox = afterSnapshot(() => void pane.takeOver('ann').type('mine'))
    const arrival = await pane.paste(turn, manner({ inputBox, patienceMs: 300 }))
    expect(arrival).toEqual({ state: 'queued', evidence: 'not written: ann has taken over its terminal' })
    expect((await pane.screen()).lines[0]).toBe('> mine')
    expect(fixture.received()).toEqual([])
    pane.close()
  })

  it('is not submitted along with our text that waits for Enter', async () => {
    await leaveUnsent()
    const keyboard = pane.takeOver('ann')
    expect(await pane.submitPending(draft)).toBe(false)
    await keyboard.type(' and mine')
    keyboard.release()
    expect(await pane.submitPending(draft)).toBe(false)
    expect(fixture.received()).toEqual([])
  })

  it('and types nothing leaves our text for us to submit', async () => {
    await leaveUnsent()
    pane.takeOver('ann').release()
    expect(await pane.submitPending(draft)).toBe(true)
    await expect.poll(() => fixture.received()).toMatchObject([{ text: turn.text }])
  })
})

describe('between the paste and Enter', () => {
  const afterThePaste = (what: () => void) => {
    setTimeout(what, 150)
    return manner({ enterAfterMs: 400, evidenceMs: 300 })
  }

  it('a dialog that opens is not answered', async () => {
    let state: SessionState = 'idle'
    const asked = { ...afterThePaste(() => (state = 'waiting_input')), state: () => state }
    const arrival = await pane.paste(turn, asked)
    expect(arrival).toEqual({
      state: 'uncertain',
      evidence: expect.stringContaining('Enter was not pressed'),
    })
    expect(fixture.received()).toEqual([])
    expect(inputOff()).toBe('0')
  })

  it('typed keys do not get in', async () => {
    const typed = afterThePaste(() => fixture.tmux('send-keys', '-t', pane.id, 'fused'))
    await pane.paste(turn, typed)
    expect(fixture.received().map(({ text }) => text)).toEqual([turn.text])
  })

  /** A pane whose connection breaks at commands with that word: before tmux gets them, or after it executed them. */
  function cutOffAt(word: string, times: number, when: 'before' | 'after') {
    let left = times
    const run: TmuxServer['run'] = async (...commands) => {
      const isCut = commands.flat().some((part) => part.includes(word)) && left-- > 0
      const blocks = isCut && when === 'before' ? [] : await server.run(...commands)
      if (isCut) throw new ControlLost('cut off')
      return blocks
    }
    const cut: TmuxServer = Object.create(server, { run: { value: run } })
    return open(pane.id, { server: cut })
  }

  it.each(['before', 'after'] as const)(
    'a connection that is lost %s Enter costs neither the Enter nor a second one',
    async (when) => {
      const late = manner({ enterAfterMs: 200, evidenceMs: 60_000 })
      void cutOffAt('Enter', 1, when).paste(turn, late)
      await expect.poll(() => fixture.received(), { timeout: 3000 }).toMatchObject([{ text: turn.text }])
      await expect.poll(inputOff).toBe('0')
      expect(fixture.received()).toHaveLength(1)
    },
  )

  it('a lost connection that hides the paste leaves no dead keyboard', async () => {
    let state: SessionState = 'idle'
    setTimeout(() => (state = 'busy'), 150)
    const cut = cutOffAt('@orc_written', 2, 'after')
    const arrival = await cut.paste(turn, manner({ enterAfterMs: 1000, state: () => state }))
    expect(arrival).toMatchObject({ state: 'uncertain' })
    expect(inputOff()).toBe('0')
    expect(await cut.submitPending(draft)).toBe(true)
    await expect.poll(() => fixture.received()).toMatchObject([{ text: turn.text }])
  })

  it('lasting copy mode leaves the text unsubmitted, and the result says so', async () => {
    const left = afterThePaste(() => fixture.tmux('copy-mode', '-t', pane.id))
    const arrival = await pane.paste(turn, left)
    expect(arrival).toEqual({ state: 'uncertain', evidence: expect.stringContaining('copy mode') })
    expect(fixture.received()).toEqual([])
    expect(inputOff()).toBe('0')
  })
})

describe('after Enter', () => {
  it('the evidence is the result', async () => {
    const evidence = Promise.resolve<DeliveryResult>({ state: 'read', evidence: 'it answered' })
    expect(await pane.paste(turn, manner({ evidence }))).toEqual({ state: 'read', evidence: 'it answered' })
  })

  it('a draft that may belong to a person is not submitted', async () => {
    const inputBox = () => (fixture.received().length === 0 ? ('empty' as const) : ('draft' as const))
    const person = await fixture.attach()
    const delivery = pane.paste(turn, manner({ inputBox, evidenceMs: 1500, patienceMs: 8000 }))
    await expect.poll(() => fixture.received(), { timeout: 8000 }).toHaveLength(1)
    person.type('mine')
    expect(await delivery).toMatchObject({ state: 'uncertain' })
    expect(fixture.received()).toHaveLength(1)
  })

  it('text that is still there is submitted when the program is idle again', async () => {
    let isDeaf = true
    const withoutEnter = (word: string) =>
      isDeaf ? word.replace(/send-keys -t (\S+) Enter/, 'set-option -p -t $1 @swallowed Enter') : word
    const run: TmuxServer['run'] = (...commands) =>
      server.run(...commands.map((words) => words.map(withoutEnter)))
    const deaf = open(pane.id, { server: Object.create(server, { run: { value: run } }) })
    let state: SessionState = 'idle'
    setTimeout(() => (state = 'busy'), 150)
    expect(await deaf.paste(turn, manner({ state: () => state }))).toMatchObject({ state: 'uncertain' })
    expect(fixture.received()).toEqual([])
    isDeaf = false
    expect(await deaf.submitPending(draft)).toBe(true)
    await expect.poll(() => fixture.received()).toMatchObject([{ text: turn.text }])
  })

  it('arrival is not reported without evidence', async () => {
    const arrival = await pane.paste(turn, manner())
    expect(arrival).toEqual({
      state: 'uncertain',
      evidence: expect.stringContaining('no evidence within 200 ms'),
    })
    expect(fixture.received()).toHaveLength(1)
  })
})

it('does not write into an input box it cannot recognise', async () => {
  const arrival = await pane.paste(turn, manner({ inputBox: () => 'unknown', patienceMs: 100 }))
  expect(arrival).toEqual({ state: 'queued', evidence: expect.stringContaining('recognised') })
  expect(fixture.received()).toEqual([])
})

it('keys are pressed, except in copy mode', async () => {
  await pane.press(['a', 'Enter'])
  await expect.poll(() => fixture.received()).toHaveLength(1)
  fixture.tmux('copy-mode', '-t', pane.id)
  await pane.press(['b', 'Enter'])
  fixture.tmux('send-keys', '-t', pane.id, '-X', 'cancel')
  await pane.press(['c', 'Enter'])
  await expect.poll(() => fixture.received().map(({ text }) => text)).toEqual(['a', 'c'])
})

describe('a service that is killed between the paste and Enter', () => {
  const unsent = () => fixture.tmux('display-message', '-p', '-t', pane.id, '#{@orc_unsent}')

  const foundBy = async (clock = REAL_CLOCK) =>
    open(pane.id, {
      ...{ clock, isFound: true, pendingInput: await readPendingInput(server, REAL_CLOCK, pane.id) },
    })

  /** An earlier service has pressed Enter for a text of eight lines. */
  function leaveEntered() {
    fixture.tmux('set-option', '-p', '-t', pane.id, '@orc_unsent', '8 [END ORCHUB MESSAGE msg_1]')
    fixture.tmux('set-option', '-p', '-t', pane.id, '@orc_entered', '1')
  }

  /** The same pane, as the next service finds it. */
  async function foundAgain(clock = REAL_CLOCK): Promise<TmuxPane> {
    void pane.paste(turn, manner({ enterAfterMs: 60_000 }))
    await expect.poll(unsent).toMatch(/^\d+ \[END ORCHUB MESSAGE msg_1\]$/)
    await expect.poll(() => captured()).toContain('[END ORCHUB MESSAGE msg_1]')
    fixture.tmux('send-keys', '-t', pane.id, 'x')
    expect(inputOff()).toBe('1')
    return foundBy(clock)
  }

  it('leaves text that nobody can add to; a later service presses Enter (C25)', async () => {
    await foundAgain()
    expect(inputOff()).toBe('1')
    const found = await foundBy()
    expect(await found.submitPending(draft)).toBe(true)
    expect(inputOff()).toBe('0')
    await expect.poll(() => fixture.received()).toMatchObject([{ text: turn.text }])
    expect(await found.submitPending(draft)).toBe(false)
    // There was no evidence; the empty box tells the next delivery.
    const next = await foundBy()
    expect(next.pendingText?.()).toBeDefined()
    expect(await next.submitPending({ ...draft, inputBox: () => 'empty' })).toBe(false)
    expect([next.pendingText?.(), unsent()]).toEqual([undefined, ''])
  })

  it.each([
    ['', '[Pasted Text: 8 lines]'],
    [', and began another line', '[Pasted Text: 8 lines]\n   '],
  ])('has Enter pressed again by the next one where a program that hung swallowed it%s', async (_, shown) => {
    fixture.tmux('set-buffer', '-b', 'shown', shown)
    fixture.tmux('paste-buffer', '-p', '-b', 'shown', '-t', pane.id)
    leaveEntered()
    await expect.poll(captured).toContain('lines]')
    const found = await foundBy()
    expect(await found.submitPending(draft)).toBe(true)
  })

  it.each([
    ['of another length', '[Pasted Text: 9 lines]'],
    ['with more behind it', '[Pasted Text: 8 lines] and mine'],
    ['behind a word', 'mine [Pasted Text: 8 lines]'],
  ])('does not take a paste for its own that is shown %s', async (_, shown) => {
    fixture.tmux('send-keys', '-t', pane.id, '-l', shown)
    leaveEntered()
    await expect.poll(captured).toContain(shown)
    expect(await (await foundBy()).submitPending(draft)).toBe(false)
    expect(fixture.received()).toEqual([])
  })

  it('has it submitted before the next message is written, and the two are not mixed (C25)', async () => {
    const found = await foundAgain()
    const next = turnOf('msg_2', 'next')
    const inputBox: PasteOptions['inputBox'] = ({ lines, cursor }) =>
      lines[cursor.y] === '>' ? 'empty' : 'unknown'
    await found.paste(next, manner({ inputBox, patienceMs: 5000 }))
    expect(fixture.received().map(({ text }) => text)).toEqual([turn.text, next.text])
  })

  it('has nothing submitted in a dialog, and no text that a person added to', async () => {
    await foundAgain()
    fixture.tmux('select-pane', '-e', '-t', pane.id)
    const found = await foundBy()
    expect(await found.submitPending({ ...draft, state: () => 'waiting_input' })).toBe(false)
    fixture.tmux('send-keys', '-t', pane.id, ' and mine')
    await expect.poll(async () => (await found.screen()).lines.join('\n')).toContain('and mine')
    expect(await found.submitPending({ ...draft, inputBox: () => 'unknown' })).toBe(false)
    expect(fixture.received()).toEqual([])
    expect(await found.submitPending({ ...draft, inputBox: () => 'empty' })).toBe(false)
    expect([inputOff(), unsent()]).toEqual(['0', ''])
  })

  it('does not leave people with a dead keyboard when the program never reaches its prompt', async () => {
    const hasty = {
      ...REAL_CLOCK,
      after: (_: number, callback: () => void) => REAL_CLOCK.after(10, callback),
    }
    const found = await foundAgain(hasty)
    await expect.poll(inputOff).toBe('0')
    expect(unsent()).toContain(found.pendingText?.())
    expect(await found.submitPending(draft)).toBe(true)
    await expect.poll(() => fixture.received()).toMatchObject([{ text: turn.text }])
  })

  it('does not count it as settled before the program can have reported the turn (C25)', async () => {
    const found = await foundAgain()
    const slow = { ...draft, lagMs: 60_000 }
    expect(await found.submitPending(slow)).toBe(true)
    await expect.poll(() => fixture.received()).toHaveLength(1)
    expect(await found.submitPending({ ...slow, inputBox: () => 'empty' })).toBe(true)
    expect(await found.submitPending({ ...slow, state: () => 'busy' })).toBe(false)
    expect(await found.submitPending({ ...slow, inputBox: () => 'empty' })).toBe(false)
    expect(fixture.received()).toHaveLength(1)
  })

  it('is not searched above the cursor if no input box is known: the program may have accepted it', async () => {
    fixture.tmux('set-buffer', '-b', 'shown', '[END ORCHUB MESSAGE msg_1]\n   ')
    fixture.tmux('paste-buffer', '-p', '-b', 'shown', '-t', pane.id)
    leaveEntered()
    await expect.poll(captured).toContain('msg_1]')
    const found = await foundBy()
    expect(await found.submitPending({ ...draft, inputBox: () => 'unknown' })).toBe(false)
    expect(await found.submitPending(draft)).toBe(true)
  })

  it('is cleared as soon as the message is known to be in the conversation', async () => {
    const found = await foundAgain()
    expect(found.pendingText?.()).toBeDefined()
    found.markAccepted(['msg_2'])
    expect(found.pendingText?.()).toBeDefined()
    found.markAccepted(['msg_1'])
    await expect.poll(() => [inputOff(), unsent(), found.pendingText?.()]).toEqual(['0', '', undefined])
    expect(await found.submitPending(draft)).toBe(false)
  })

  it('leaves nothing to submit when Enter came with the paste', async () => {
    await pane.paste(turn, manner())
    expect(unsent()).toBe('')
  })
})

describe('a delivery that is no longer wanted', () => {
  const busy: Partial<PasteOptions> = { state: () => 'busy', patienceMs: 60_000 }

  it('ends at once as queued while the guard blocks it, and reports the reason meanwhile', async () => {
    const gone = new AbortController()
    const delivery = pane.paste(turn, manner({ ...busy, signal: gone.signal }))
    await expect.poll(() => pane.blockedBy()).toBe('it is busy')
    gone.abort(new Error('the agent was paused'))
    expect(await delivery).toEqual({ state: 'queued', evidence: 'no longer wanted: the agent was paused' })
    expect(pane.blockedBy()).toBeUndefined()
    expect(fixture.received()).toEqual([])
  })

  it('is not written when it is cancelled between the snapshot and the paste', async () => {
    const gone = new AbortController()
    const inputBox = afterSnapshot(() => gone.abort('reset'))
    const arrival = await pane.paste(turn, manner({ inputBox, signal: gone.signal }))
    expect(arrival).toEqual({ state: 'queued', evidence: 'no longer wanted: reset' })
    expect((await pane.screen()).lines[0]).toBe('>')
  })

  it('is finished if it was already pasted: half a message would mix with the next (C25)', async () => {
    const gone = new AbortController()
    const delivery = pane.paste(turn, manner({ enterAfterMs: 300, signal: gone.signal }))
    await expect.poll(captured).toContain('END ORCHUB')
    gone.abort('paused')
    expect(await delivery).toMatchObject({ state: 'uncertain' })
    expect(fixture.received().map(({ text }) => text)).toEqual([turn.text])
  })
})
