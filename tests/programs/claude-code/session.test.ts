import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { MAX_HOOK_RESPONSE_BYTES } from '../../../src/programs/claude-code/deliver.ts'
import { boxWith, message, openRig, putBack, type Rig, turn } from './rig.ts'

const after = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

describe('following Claude Code', () => {
  let rig: Rig
  afterEach(() => rig.close())

  async function ready(found = true, savedState: object = {}) {
    rig = await openRig(savedState, found)
    rig.status('idle')
    await rig.state('idle')
  }

  /** Our message is submitted, and its hook and the transcript show it. */
  async function readyWithPrompt() {
    await ready()
    await rig.submit(message('msg_1'))
    rig.prompt(message('msg_1'))
  }

  /** A turn ends while a person's draft is in the input box. */
  async function endTurnBehindDraft() {
    rig.show(boxWith('half a dra'))
    await rig.submit('hi')
    const stopped = rig.hook('Stop', { stop_hook_active: false })
    await rig.state('idle')
    return { stopped }
  }

  it.each([
    ['after', false],
    ['before', true],
  ])(
    'is ready once its model has our tools, which it may ask for %s its SessionStart hook',
    async (_, first) => {
      rig = await openRig()
      rig.status('idle')
      await after(100)
      expect(rig.session.state).toBe('initializing')
      if (first) rig.session.onToolsListed!()
      await rig.hook('SessionStart', { source: 'startup' })
      await after(first ? 100 : 1000)
      expect(rig.session.state).toBe('initializing')
      if (!first) rig.session.onToolsListed!()
      await rig.state('idle')
    },
  )

  it('is ready without our tools if it never lists them', async () => {
    rig = await openRig()
    rig.status('idle')
    await rig.hook('SessionStart', { source: 'startup' })
    await vi.waitFor(() => expect(rig.session.state).toBe('idle'), 8000)
  })

  it('reads a status file that is seen half-written once it is whole (C23)', async () => {
    rig = await openRig({}, true)
    writeFileSync(join(rig.root, 'sessions', '4242.json'), '{"sessionId":"s1","sta')
    await after(50)
    rig.status('waiting', { waitingFor: 'permission prompt' })
    await rig.state('waiting_input')
  })

  it('finds the status file of a child of a wrapper by its session', async () => {
    rig = await openRig({}, true)
    const status = { sessionId: 's1', status: 'idle', statusUpdatedAt: Date.now() + 1 }
    writeFileSync(join(rig.root, 'sessions', `${process.pid}.json`), JSON.stringify(status))
    await rig.hook('SessionEnd')
    await rig.state('idle')
  })

  it('pastes into an idle program, with its UserPromptSubmit hook as evidence (C27)', async () => {
    await ready()
    const delivery = rig.session.deliver(turn('msg_1'))
    await vi.waitFor(() => expect(rig.pasted).toHaveLength(1))
    await rig.hook('UserPromptSubmit', {
      prompt: `typed before\n${message('msg_1').replaceAll('\n', '\n  ')}`,
    })
    expect(await delivery).toMatchObject({ state: 'submitted' })
    expect(rig.arrived).toContain('msg_1 submitted')
    expect(rig.session.state).toBe('busy')
  })

  describe('when the first answer is written before its prompt, as 2.1.197 does', () => {
    const orphan = { parentUuid: 'listing' }
    const listing = () => {
      const record = {
        type: 'attachment',
        uuid: 'listing',
        parentUuid: 'p2',
        attachment: { type: 'skill_listing' },
      }
      appendFileSync(rig.transcript, `${JSON.stringify(record)}\n`)
    }

    it('reads the prompt first, then the answer, and reports the message as read', async () => {
      await ready()
      await rig.submit(message('msg_1'))
      rig.answer('done', orphan)
      await rig.hook('SessionStart')
      rig.prompt(message('msg_1'))
      listing()
      await rig.hook('Stop', { last_assistant_message: 'done', stop_hook_active: false })
      expect(rig.arrived).toContain('msg_1 read')
      expect(rig.said).toMatchObject([{ text: 'done', key: 'a1' }])
    })

    it('reports the message as read even if its prompt comes long after the end of the turn', async () => {
      await ready()
      await rig.submit(message('msg_1'))
      rig.answer('done', orphan)
      await rig.hook('Stop', { last_assistant_message: 'done', stop_hook_active: false })
      expect(rig.said).toMatchObject([{ text: 'done' }])
      rig.prompt(message('msg_1'))
      listing()
      await vi.waitFor(() => expect(rig.arrived).toContain('msg_1 read'))
      rig.prompt(message('msg_2'), { parentUuid: 'a1' })
      await vi.waitFor(() => expect(rig.arrived).toContain('msg_2 submitted'))
      expect(rig.arrived).not.toContain('msg_2 read')
    })

    it('does not report the next message as read because of an earlier answer', async () => {
      await ready()
      await rig.submit(message('msg_1'))
      rig.answer('done', { parentUuid: 'late' })
      await rig.hook('Stop', { last_assistant_message: 'done', stop_hook_active: false })
      rig.prompt(message('msg_2'), { parentUuid: 'a1' })
      rig.prompt(message('msg_1'), { uuid: 'late', parentUuid: null })
      await vi.waitFor(() =>
        expect(rig.arrived).toEqual(['msg_1 submitted', 'msg_2 submitted', 'msg_1 submitted']),
      )
    })

    it('reads an answer at the end of the turn whose prompt is in no file', async () => {
      await ready()
      await rig.submit('hi')
      rig.answer('done', orphan)
      await rig.hook('Stop', { last_assistant_message: 'done', stop_hook_active: false })
      expect(rig.said).toMatchObject([{ text: 'done' }])
    })
  })

  it('does not accept the prompt of another message as evidence', async () => {
    await ready()
    const delivery = rig.session.deliver(turn('msg_1'))
    await vi.waitFor(() => expect(rig.pasted).toHaveLength(1))
    await rig.submit(message('msg_11'))
    rig.pasted[0]!.settle({ state: 'uncertain', evidence: 'no sign' })
    expect(await delivery).toMatchObject({ state: 'uncertain' })
  })

  it('pastes at the end of a turn, as soon as the program is back at its prompt', async () => {
    await ready()
    await rig.submit('hi')
    rig.prompt('hi')
    rig.answer('done')
    const stopped = rig.hook('Stop', { last_assistant_message: 'done', stop_hook_active: false })
    await rig.state('idle')
    expect(rig.said.map(({ text }) => text)).toEqual(['done'])
    const delivery = rig.session.deliver(turn('msg_1'))
    expect(await stopped).toEqual({})
    expect(rig.pasted).toEqual([])
    rig.status('idle')
    await vi.waitFor(() => expect(rig.pasted).toHaveLength(1))
    await rig.submit(message('msg_1'))
    expect(await delivery).toMatchObject({ state: 'submitted' })
  })

  it("delivers a turn past a person's draft as the response to its Stop hook, with the transcript as evidence (ask 4)", async () => {
    await ready()
    const { stopped } = await endTurnBehindDraft()
    const delivery = rig.session.deliver(turn('msg_2'))
    expect(await stopped).toEqual({
      hookSpecificOutput: { hookEventName: 'Stop', additionalContext: message('msg_2') },
    })
    expect(rig.session.state).toBe('busy')
    rig.feedback(message('msg_2'))
    expect(await delivery).toMatchObject({ state: 'submitted' })
    rig.answer('again')
    await vi.waitFor(() => expect(rig.arrived).toEqual(['msg_2 submitted', 'msg_2 read']))
    expect(rig.pasted).toEqual([])
  })

  it("delivers a turn past a person's draft however long the snapshot of the input box takes (ask 4)", async () => {
    await ready()
    const { stopped } = await endTurnBehindDraft()
    rig.delayScreen(after(600))
    const delivery = rig.session.deliver(turn('msg_2'))
    expect(await stopped).toMatchObject({ hookSpecificOutput: { additionalContext: message('msg_2') } })
    rig.feedback(message('msg_2'))
    expect(await delivery).toMatchObject({ state: 'submitted' })
  })

  it("holds a turn behind a person's draft if it is too long for a hook response", async () => {
    await ready()
    const { stopped } = await endTurnBehindDraft()
    const text = `${message('msg_2')}\n${'é'.repeat(MAX_HOOK_RESPONSE_BYTES / 2)}`
    void rig.session.deliver({ text, ids: ['msg_2'] })
    expect(await stopped).toEqual({})
  })

  it("delivers as many messages past a person's draft as fit into a hook response, in order (ask 4)", async () => {
    await ready()
    const { stopped } = await endTurnBehindDraft()
    const long = (id: string) => message(id).replace('hello', 'é'.repeat(MAX_HOOK_RESPONSE_BYTES / 5))
    const texts = ['msg_1', 'msg_2', 'msg_3'].map(long)
    const delivery = rig.session.deliver({ text: texts.join('\n\n'), ids: ['msg_1', 'msg_2', 'msg_3'] })
    const first = `${texts[0]}\n\n${texts[1]}`
    expect(await stopped).toMatchObject({ hookSpecificOutput: { additionalContext: first } })
    rig.feedback(first)
    expect(await delivery).toMatchObject({ state: 'submitted', ids: ['msg_1', 'msg_2'] })
    expect(rig.arrived).toEqual(['msg_1 submitted', 'msg_2 submitted'])
  })

  it("does not split a withdrawn turn past a person's draft: it would arrive twice (C25)", async () => {
    const long = (id: string) => message(id).replace('hello', 'é'.repeat(MAX_HOOK_RESPONSE_BYTES / 5))
    const taken = { text: `${long('msg_1')}\n\n${long('msg_2')}`, ids: ['msg_1', 'msg_2'] }
    await ready(true, { withdrawn: [taken] })
    const { stopped } = await endTurnBehindDraft()
    void rig.session.deliver({ text: long('msg_3'), ids: ['msg_3'] })
    expect(await stopped).toEqual({})
    expect(rig.arrived).toEqual([])
    expect(rig.savedState.withdrawn).toMatchObject([taken])
  })

  it('lets the turn end when nothing waits, and pastes only when the program is back at its prompt', async () => {
    await ready()
    await rig.submit('hi')
    expect(await rig.hook('Stop', { stop_hook_active: false })).toEqual({})
    expect(rig.session.state).toBe('idle')
    expect(await rig.session.deliver(turn('msg_3'))).toMatchObject({ state: 'queued' })
    rig.status('idle')
    await vi.waitFor(async () => {
      void rig.session.deliver(turn('msg_3'))
      await after(20)
      expect(rig.pasted).toHaveLength(1)
    })
  })

  it('does not answer its Stop hook too often in a row, since the program would end the turn', async () => {
    await ready()
    rig.show(boxWith('half a dra'))
    await rig.submit('hi')
    for (let n = 0; n < 7; n++) {
      const stopped = rig.hook('Stop', { stop_hook_active: n > 0 })
      await rig.state('idle')
      void rig.session.deliver(turn(`msg_${n}`))
      expect(await stopped).toHaveProperty('hookSpecificOutput')
      rig.feedback(message(`msg_${n}`))
      await vi.waitFor(() => expect(rig.arrived).toContain(`msg_${n} submitted`))
    }
    expect(await rig.hook('Stop', { stop_hook_active: true })).toEqual({})
  })

  it('waits for the last text before it reports the end of the turn', async () => {
    await ready()
    await rig.submit('hi')
    rig.prompt('hi')
    const stopped = rig.hook('Stop', { last_assistant_message: 'late words' })
    await after(100)
    expect(rig.session.state).toBe('busy')
    rig.answer('late words')
    await rig.state('idle')
    expect(rig.said.map(({ text }) => text)).toEqual(['late words'])
    await stopped
  })

  it('ends a turn whose command waits for a response in the next turn, and keeps its position (C4)', async () => {
    await ready()
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    vi.mocked(rig.port.onText).mockReturnValueOnce(answered)
    await rig.submit('hi')
    rig.prompt('hi')
    rig.answer('<orc-command name="mailbox_check"/>')
    const before = () => (rig.savedState.position as { offset: number } | undefined)?.offset
    await rig.hook('Stop', { last_assistant_message: '<orc-command name="mailbox_check"/>' })
    expect(rig.session.state).toBe('idle')
    const fixture = before()
    answer()
    await vi.waitFor(() => expect(before()).toBeGreaterThan(fixture ?? 0))
  })

  it('is busy when another hook keeps the program working after its turn', async () => {
    await ready()
    await rig.submit('hi')
    await rig.hook('Stop', {})
    await rig.state('busy')
  })

  it('passes the verdict on a dialog to the program, a denial with its reason (C9)', async () => {
    await ready()
    const answered = rig.hook('PermissionRequest', { tool_name: 'Bash', tool_input: { command: 'ls' } })
    await rig.state('waiting_input')
    ;(await rig.question()).answer({ allow: false, comment: 'not now' })
    expect(await answered).toEqual({
      hookSpecificOutput: {
        hookEventName: 'PermissionRequest',
        decision: { behavior: 'deny', message: 'not now' },
      },
    })
    expect(rig.session.state).toBe('busy')
  })

  it('closes only the question whose tool has run, of two that are open', async () => {
    await ready()
    const content = ['one', 'two'].map((command) => ({
      ...{ type: 'tool_use', id: `use_${command}`, name: 'Bash', input: { command } },
    }))
    const ask = (command: string) =>
      rig.hook('PermissionRequest', { tool_name: 'Bash', tool_input: { command } })
    const first = ask('one')
    const questions = [await rig.question()]
    const second = ask('two')
    questions.push(await rig.question())
    // The transcript comes after the dialogs.
    rig.answer('', { message: { id: 'm', model: 'x', content } })
    await vi.waitFor(async () => {
      await rig.hook('PostToolUse', { tool_name: 'Bash', tool_use_id: 'use_one' })
      expect(questions[0]!.isGone).toBe(true)
    })
    expect(await first).toEqual({})
    expect(questions[1]!.isGone).toBe(false)
    questions[1]!.answer({ allow: true })
    expect(await second).toMatchObject({ hookSpecificOutput: { decision: { behavior: 'allow' } } })
  })

  it('closes the question when the program continues, since the person answered in the pane', async () => {
    await ready()
    const answered = rig.hook('PermissionRequest', { tool_name: 'Bash', tool_input: {} })
    const question = await rig.question()
    rig.status('waiting')
    await after(50)
    rig.status('busy')
    await vi.waitFor(() => expect(question.isGone).toBe(true))
    expect(await answered).toEqual({})
    await rig.state('busy')
  })

  it('passes a notice on with the next tool call of the main conversation (C2)', async () => {
    await ready()
    await rig.submit('hi')
    await rig.session.notice('mail!')
    const used = { tool_name: 'Bash', tool_use_id: 'u' }
    expect(await rig.hook('PostToolUse', { ...used, agent_id: 'sub' })).toEqual({})
    expect(await rig.hook('PostToolUse', used)).toEqual({
      hookSpecificOutput: { hookEventName: 'PostToolUse', additionalContext: 'mail!' },
    })
    expect(await rig.hook('PostToolUse', used)).toEqual({})
  })

  it('delivers a withdrawn message again, after the next one, and then no more (asks 1, 11)', async () => {
    await readyWithPrompt()
    rig.show(putBack('msg_1'))
    rig.status('idle')
    await rig.state('idle')
    expect(await rig.session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
    expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')])
    rig.show(boxWith(''))
    const delivery = rig.session.deliver(turn('msg_2'))
    await vi.waitFor(() => expect(rig.pasted).toHaveLength(1))
    expect(rig.pasted[0]!.turn).toEqual({
      text: `${message('msg_2')}\n\n${message('msg_1')}`,
      ids: ['msg_2', 'msg_1'],
    })
    await rig.submit(rig.pasted[0]!.turn.text)
    expect(await delivery).toMatchObject({ state: 'submitted' })
    await vi.waitFor(() => expect(rig.savedState.withdrawn).toEqual([]))
  })

  it.each([
    ['at first', false],
    ['after another turn', true],
  ])('redelivers a message that was withdrawn %s, also by the next service (C25)', async (_, isLater) => {
    await ready()
    if (isLater) {
      await rig.submit('hi')
      rig.prompt('hi')
      rig.answer('first')
      await rig.hook('Stop', { last_assistant_message: 'first' })
      rig.status('idle')
    }
    await rig.submit(message('msg_1'))
    rig.prompt(message('msg_1'))
    rig.show(putBack('msg_1'))
    rig.status('idle')
    await vi.waitFor(() => expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')]))
    const before = rig
    await before.session.close('leave')
    await ready(true, before.savedState)
    await vi.waitFor(() => expect(rig.pasted.map((one) => one.turn)).toEqual([turn('msg_1')]), 5000)
    expect(await rig.session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
    // Said in answer to something else: it is still to be read.
    before.answer('something else')
    await vi.waitFor(() => expect(rig.said).toHaveLength(1))
    expect(rig.arrived).not.toContain('msg_1 read')
    await before.close()
  })

  it.each([
    ['the screen shows it', () => rig.show(putBack('msg_1')), () => rig.prompt(message('msg_1'))],
    ['the screen shows it, and the transcript never', () => rig.show(putBack('msg_1')), () => {}],
  ])(
    'gives a message again that was taken back long before %s, as on a busy machine (C25)',
    async (_, first, last) => {
      await ready()
      await rig.submit(message('msg_1'))
      rig.status('idle')
      await after(700)
      last()
      await after(700)
      expect(rig.session.state).toBe('busy')
      first()
      await rig.state('idle')
      expect(await rig.session.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
      expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')])
    },
  )

  it('delivers a message again that was withdrawn while its terminal was unreadable (C25)', async () => {
    await readyWithPrompt()
    const lost = Promise.reject(new Error('tmux is gone for a moment'))
    lost.catch(() => {})
    rig.delayScreen(lost)
    rig.status('idle')
    await after(300)
    rig.show(putBack('msg_1'))
    rig.delayScreen(Promise.resolve())
    await rig.state('idle')
    expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')])
  })

  it('presses Escape once, however long it takes to find out what it withdrew (ask 11)', async () => {
    await ready()
    await rig.submit(message('msg_1'))
    const interrupted = rig.session.interrupt()
    await vi.waitFor(() => expect(rig.keys).toEqual(['Escape']))
    rig.status('idle')
    await after(2500)
    expect(rig.keys).toEqual(['Escape'])
    rig.prompt(message('msg_1'))
    rig.show(putBack('msg_1'))
    await vi.waitFor(() => expect(rig.keys).toContain('C-u'), 5000)
    rig.show(boxWith(''))
    expect(await interrupted).toMatchObject({ stopped: true })
    expect(rig.keys.filter((key) => key === 'Escape')).toHaveLength(1)
    expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')])
  })

  it('saves a withdrawn prompt before it clears the input box, and leaves it there if saving fails', async () => {
    await readyWithPrompt()
    rig.failSaving(true)
    const interrupted = rig.session.interrupt()
    await vi.waitFor(() => expect(rig.keys).toEqual(['Escape']))
    rig.show(putBack('msg_1'))
    rig.status('idle')
    expect(await interrupted).toMatchObject({ stopped: true })
    expect(rig.keys).toEqual(['Escape'])
  })

  it.each([
    ['empties the input box of it', '', true],
    ['leaves it to the person who has changed it', ' and mine', false],
  ])(
    'keeps what an interrupt took back as soon as there is room for it, and %s',
    async (_, typed, isEmptied) => {
      await ready()
      await rig.submit(message('msg_1'))
      rig.prompt(message('msg_1'))
      rig.failSaving(true)
      const interrupted = rig.session.interrupt()
      await vi.waitFor(() => expect(rig.keys).toEqual(['Escape']))
      rig.show(putBack('msg_1'))
      rig.status('idle')
      await interrupted
      rig.show(boxWith(`${message('msg_1').replaceAll('\n', '\n  ')}${typed}`))
      rig.failSaving(false)
      await vi.waitFor(() => expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')]), 5000)
      await after(100)
      expect(rig.keys.includes('C-u')).toBe(isEmptied)
    },
  )

  it('holds a turn that is paused during the snapshot of the input box', async () => {
    await ready()
    const { stopped } = await endTurnBehindDraft()
    const held = new AbortController()
    const { promise, resolve } = Promise.withResolvers<void>()
    rig.delayScreen(promise)
    const delivery = rig.session.deliver(turn('msg_2'), held.signal)
    await new Promise((done) => setImmediate(done))
    held.abort('it was paused')
    resolve()
    expect(await stopped).toEqual({})
    expect(await delivery).toMatchObject({ state: 'queued' })
  })

  it('does not mistake a quoted header for the message', async () => {
    await ready()
    await rig.submit('what was [ORCHUB MESSAGE msg_9] about?')
    rig.prompt('what was [ORCHUB MESSAGE msg_9] about?')
    rig.answer('I do not know.')
    await vi.waitFor(() => expect(rig.said).toHaveLength(1))
    expect(rig.arrived).toEqual([])
  })

  it('recognises in the transcript that another prompt replaced a withdrawn one', async () => {
    await ready()
    await rig.submit(message('msg_1'))
    rig.prompt(message('msg_1'), { parentUuid: 'before' })
    rig.prompt('never mind', { parentUuid: 'before' })
    rig.answer('fine')
    await vi.waitFor(() => expect(rig.said).toHaveLength(1))
    expect(rig.arrived).not.toContain('msg_1 read')
    await vi.waitFor(() => expect(rig.savedState.withdrawn).toMatchObject([turn('msg_1')]))
    rig.status('idle')
    await vi.waitFor(() => expect(rig.pasted.map((one) => one.turn)).toEqual([turn('msg_1')]), {
      timeout: 4000,
    })
  })

  it('delivers nothing again during a halt, and delivers it afterwards (issue 4, §4)', async () => {
    await ready(true, { withdrawn: [turn('msg_1')] })
    vi.mocked(rig.port.isPaused).mockReturnValue(true)
    await after(2500)
    expect(rig.port.isPaused).toHaveBeenCalled()
    expect(rig.pasted).toEqual([])
    vi.mocked(rig.port.isPaused).mockReturnValue(false)
    await vi.waitFor(() => expect(rig.pasted.map((one) => one.turn)).toEqual([turn('msg_1')]), {
      timeout: 4000,
    })
  })

  it('does not duplicate a message that is sent again after it was withdrawn', async () => {
    await ready(true, { withdrawn: [turn('msg_1')] })
    void rig.session.deliver(turn('msg_1'))
    await vi.waitFor(() => expect(rig.pasted.map((one) => one.turn)).toEqual([turn('msg_1')]))
  })

  it('does not deliver a message again whose turn was only interrupted', async () => {
    await readyWithPrompt()
    rig.show(boxWith('[Pasted text #1 +20 lines]'))
    rig.status('idle')
    setTimeout(() => rig.prompt('[Request interrupted by user]'), 80)
    await rig.state('idle')
    expect(rig.savedState.withdrawn).toEqual([])
    expect(await rig.session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
  })

  it('locates several messages at once, in the requested order (C25)', async () => {
    await ready(true, { withdrawn: [turn('msg_3')] })
    await rig.hook('SessionStart')
    rig.prompt(message('msg_1'))
    rig.prompt(message('msg_2'))
    const locations = await rig.session.locate(['msg_9', 'msg_2', 'msg_3', 'msg_1'])
    expect(locations.map(({ at }) => at)).toEqual(['absent', 'submitted', 'absent', 'submitted'])
    expect(locations[2]!.evidence).toContain('withdrawn')
    expect(await rig.session.locate([])).toEqual([])
  })

  it('reports a message as absent only at an empty prompt (C25)', async () => {
    await ready()
    expect(await rig.session.locate(['msg_9'])).toMatchObject([{ at: 'absent' }])
    rig.show(boxWith('a draft'))
    expect(await rig.session.locate(['msg_9'])).toMatchObject([{ at: 'unknown' }])
    await rig.submit('hi')
    expect(await rig.session.locate(['msg_9'])).toMatchObject([{ at: 'unknown' }])
    // Quoted, but never a prompt.
    rig.answer(message('msg_9'))
    expect(await rig.session.locate(['msg_9'])).toMatchObject([{ at: 'unknown' }])
    rig.prompt(message('msg_9'))
    expect(await rig.session.locate(['msg_9'])).toMatchObject([{ at: 'submitted' }])
  })

  it('continues the transcript at its position, and reads a prompt without an answer again (C25)', async () => {
    await ready()
    await rig.submit('hi')
    rig.prompt('hi')
    rig.answer('first')
    rig.prompt(message('msg_1'))
    await vi.waitFor(() => expect(rig.arrived).toContain('msg_1 submitted'))
    await rig.session.close('leave')
    const { savedState, transcript } = rig
    rig.answer('second')
    const before = rig
    rig = await openRig(savedState, true)
    await vi.waitFor(() => expect(rig.arrived).toEqual(['msg_1 submitted', 'msg_1 read']))
    expect(rig.said.map(({ text }) => text)).toEqual(['second'])
    expect(transcript).toBe(savedState.transcript)
    await before.close()
  })

  it('continues in the transcript of another conversation, and searches the earlier one for messages', async () => {
    await readyWithPrompt()
    rig.answer('one')
    await vi.waitFor(() => expect(rig.said).toHaveLength(1))
    const next = join(rig.root, 'other.jsonl')
    await rig.hook('SessionStart', { session_id: 's2', transcript_path: next, source: 'clear' })
    const content = [{ type: 'text', text: 'two' }]
    const record = {
      type: 'assistant',
      uuid: 'x',
      timestamp: new Date().toISOString(),
      message: { model: 'm', content },
    }
    appendFileSync(next, `${JSON.stringify(record)}\n`)
    await vi.waitFor(() => expect(rig.said.map(({ text }) => text)).toEqual(['one', 'two']))
    await vi.waitFor(() => expect(rig.savedState).toMatchObject({ sessionId: 's2', transcript: next }))
    expect(await rig.session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
  })

  it.each([
    ['2.1.197', 150],
    ['2.1.325', 0],
    ['2.2.0', 0],
    ['10.0.0', 0],
  ])('presses Enter in version %s %i ms after a paste', async (version, enterAfterMs) => {
    await ready()
    for (const status of ['busy', 'idle']) {
      rig.status(status, { version })
      await rig.state(status)
    }
    void rig.session.deliver({ text: 'hello', ids: [] })
    await vi.waitFor(() => expect(rig.pasted[0]?.manner).toMatchObject({ enterAfterMs }))
  })

  it('reports the tokens used and the context window (C26)', async () => {
    await ready()
    await rig.hook('SessionStart', { model: 'claude-opus-5[1m]' })
    rig.answer('x')
    await vi.waitFor(() =>
      expect(rig.port.onUsage).toHaveBeenCalledWith(
        expect.objectContaining({
          contextTokens: 8,
          contextWindow: 1_000_000,
          spent: { key: 'm1', input: 1, output: 2, cacheRead: 3, cacheWrite: 4 },
        }),
      ),
    )
  })

  it('reports an interrupt as successful only when the program is at its prompt', async () => {
    await ready()
    await rig.submit('hi')
    const interrupted = rig.session.interrupt()
    await vi.waitFor(() => expect(rig.keys).toEqual(['Escape']))
    rig.prompt('[Request interrupted by user]')
    rig.status('idle')
    expect(await interrupted).toMatchObject({ stopped: true })
    expect(rig.keys).toEqual(['Escape'])
  })

  describe('when the clock is set back by an hour', () => {
    const HOUR = 3_600_000
    const hourAgo = () => new Date(Date.now() - HOUR).toISOString()

    it('accepts the status file that is written afterwards', async () => {
      await ready()
      await rig.submit('hi')
      const now = Date.now
      vi.spyOn(Date, 'now').mockImplementation(() => now() - HOUR)
      try {
        rig.status('idle', { statusUpdatedAt: Date.now() + 1 })
        await rig.state('idle')
      } finally {
        vi.restoreAllMocks()
      }
    })

    it('reads the text of the agent in the conversation that it began, and in a new one (C4)', async () => {
      await ready(true, { begun: 's1', since: Date.now() })
      await rig.submit('hi')
      rig.answer('one', { timestamp: hourAgo() })
      await vi.waitFor(() => expect(rig.said).toMatchObject([{ text: 'one' }]))
      const clear = { session_id: 's2', transcript_path: `${rig.transcript}2` }
      await rig.hook('SessionStart', { ...clear, source: 'clear' })
      await vi.waitFor(() => expect(rig.savedState).toMatchObject({ sessionId: 's2', begun: 's2' }))
    })

    it('still ignores older text in a conversation from before the agent (C4)', async () => {
      await ready(true, { begun: 's0', since: Date.now() })
      await rig.submit('hi')
      rig.answer('old', { timestamp: hourAgo() })
      rig.answer('new', { timestamp: new Date(Date.now() + HOUR).toISOString() })
      await vi.waitFor(() => expect(rig.said.length).toBeGreaterThan(0))
      expect(rig.said).toMatchObject([{ text: 'new' }])
    })
  })

  it('ignores an unknown hook', async () => {
    await ready()
    expect(await rig.session.hook!({ hook_event_name: 'Surprise' }, new AbortController().signal)).toEqual({})
    expect(await rig.session.hook!('nonsense', new AbortController().signal)).toEqual({})
  })
})
