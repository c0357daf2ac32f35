import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openSession } from '../../../src/programs/gemini/session.ts'
import type { PaneScreen, PasteOptions, ProgramSession } from '../../../src/programs/program.ts'
import type { Turn } from '../../../src/runtimes/runtime.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { createFakePane } from '../fake-pane.ts'
import * as screens from './screens.ts'

describe('a session of Gemini', () => {
  let folder: string
  let transcript: string
  let port: RecordingPort
  let session: ProgramSession
  let screen: PaneScreen
  let pressed: string[]
  let pastes: { turn: Turn; manner: PasteOptions }[]
  const never = new AbortController().signal

  const pane = createFakePane({
    screen: async () => screen,
    async paste(turn, manner) {
      pastes.push({ turn, manner })
      return await manner.evidence
    },
    async press(keys) {
      pressed.push(...keys)
    },
  })

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'orc-gemini-'))
    transcript = join(folder, 'session.jsonl')
    await writeFile(transcript, '')
    port = createRecordingPort()
    screen = screens.empty
    pressed = []
    pastes = []
  })
  afterEach(async () => {
    await session.close('leave')
    await rm(folder, { recursive: true })
  })

  function open(more: { found?: boolean; savedState?: object } = {}) {
    session = openSession(
      {
        ...{ name: 'dev', settings: {}, cwd: folder, folder, nonce: 'n', isReattached: more.found ?? false },
        savedState: { sessionId: 'ses-1', since: 0, ...more.savedState },
      },
      pane,
      port,
      { warn: () => {} },
    )
  }

  const hook = (hook_event_name: string, more: object = {}) =>
    session.hook!({ session_id: 'ses-1', transcript_path: transcript, hook_event_name, ...more }, never)
  async function start() {
    open()
    await hook('SessionStart', { source: 'startup' })
    await port.until(() => session.state === 'idle')
  }
  async function startTurn() {
    await start()
    await hook('BeforeAgent', { prompt: 'hello' })
  }
  const exec = (command: string) =>
    hook('Notification', {
      notification_type: 'ToolPermission',
      message: 'Tool Confirm Shell Command requires execution',
      details: { type: 'exec', title: 'Confirm Shell Command', command, rootCommand: 'touch' },
    })
  const states = () => port.states.map(({ state }) => state)
  const record = (line: object) =>
    appendFile(transcript, `${JSON.stringify({ timestamp: '2026-11-15T07:43:51.997Z', ...line })}\n`)

  it('is idle after its start, busy in a turn, and idle afterwards', async () => {
    await startTurn()
    await hook('AfterAgent', { prompt: 'hello', prompt_response: 'hi', stop_hook_active: false })
    expect(states()).toEqual(['idle', 'busy', 'idle'])
  })

  it('is not idle before its input box is there', async () => {
    screen = screens.dialog('trust this folder')
    open()
    await hook('SessionStart', { source: 'startup' })
    await sleep(250)
    expect(session.state).toBe('initializing')
    screen = screens.empty
    await port.until(() => session.state === 'idle')
  })

  it('is not idle before the resumed conversation is loaded and drawn', async () => {
    open({ savedState: { transcript, isPrompted: true } })
    await hook('SessionStart', { source: 'resume' })
    await sleep(250)
    expect(session.state).toBe('initializing')
    await appendFile(transcript, '{"$set":{"sessionId":"ses-1"}}\n')
    await port.until(() => session.state === 'idle')
  })

  it('found busy, becomes idle when its screen no longer shows work: the hook at the end may have been missed', async () => {
    screen = screens.working
    open({ found: true })
    await port.until(() => session.state === 'busy')
    screen = screens.empty
    await port.until(() => session.state === 'idle')
    await hook('BeforeAgent', { prompt: 'hello' })
    await sleep(600)
    expect(states()).toEqual(['busy', 'idle', 'busy'])
  })

  it('pastes a turn, with the prompt of its hook as evidence (C25)', async () => {
    await start()
    const text = '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]'
    const arrival = session.deliver({ text, ids: ['msg_1'] })
    expect(pastes[0]!.manner.inputBox(screen)).toBe('empty')
    expect(pastes[0]!.manner.enterAfterMs).toBeGreaterThanOrEqual(100)
    await hook('BeforeAgent', { prompt: 'something of a person' })
    await hook('BeforeAgent', { prompt: text })
    expect(await arrival).toMatchObject({ state: 'submitted' })
    expect(port.arrived).toMatchObject([{ ids: ['msg_1'], state: 'submitted' }])
  })

  it('queues a turn while it is busy', async () => {
    await startTurn()
    expect(await session.deliver({ text: 'x', ids: [] })).toMatchObject({ state: 'queued' })
    expect(pastes).toEqual([])
  })

  it('delivers a notice with the next tool result (C2)', async () => {
    await startTurn()
    await session.notice('1 message waits')
    const tool = { tool_name: 'run_shell_command', tool_input: { command: 'ls' } }
    expect(await hook('BeforeTool', tool)).toEqual({})
    expect(await hook('AfterTool', tool)).toEqual({
      hookSpecificOutput: { hookEventName: 'AfterTool', additionalContext: '1 message waits' },
    })
    expect(await hook('AfterTool', tool)).toEqual({})
  })

  it('asks a person, and enters an approval by a key while the dialog is on the screen', async () => {
    await startTurn()
    await exec('touch a.txt')
    expect(session.state).toBe('waiting_input')
    const [question] = port.asked
    expect(question).toMatchObject({ tool: 'exec', input: { command: 'touch a.txt', rootCommand: 'touch' } })
    screen = screens.dialog('touch a.txt')
    question!.answer({ allow: true })
    await expect.poll(() => pressed).toEqual(['1'])
    await hook('BeforeTool', { tool_name: 'run_shell_command', tool_input: { command: 'touch a.txt' } })
    expect(question!.isGone).toBe(true)
    expect(session.state).toBe('busy')
  })

  it('enters a verdict only into the dialog it is about', async () => {
    await start()
    await exec('touch a.txt')
    screen = screens.dialog('rm -rf /')
    port.asked[0]!.answer({ allow: true })
    await sleep(50)
    expect(pressed).toEqual([])
    expect(session.state).toBe('waiting_input')
  })

  it('asks again if a verdict could not be entered, with the reason (C9)', async () => {
    await start()
    await exec('touch a.txt')
    screen = screens.dialog('touch …')
    port.asked[0]!.answer({ allow: true })
    const again = await port.until(() => port.asked[1])
    expect(again).toMatchObject({ tool: 'exec', input: { command: 'touch a.txt' } })
    expect(again.key).not.toBe(port.asked[0]!.key)
    expect(again.reason).toContain('does not show the dialog as expected')
    expect(pressed).toEqual([])
    screen = screens.dialog('touch a.txt')
    again.answer({ allow: true })
    await expect.poll(() => pressed).toEqual(['1'])
    await hook('BeforeTool', { tool_name: 'run_shell_command', tool_input: { command: 'touch a.txt' } })
    expect(again.isGone).toBe(true)
  })

  it('asks again if its screen could not be read', async () => {
    await start()
    await exec('touch a.txt')
    screen = undefined as never
    port.asked[0]!.answer({ allow: true })
    expect(await port.until(() => port.asked[1])).toMatchObject({ tool: 'exec' })
    screen = screens.empty
  })

  it('enters a verdict into the visible one of two dialogs, and asks about the other again', async () => {
    await start()
    await exec('touch a.txt')
    await exec('touch b.txt')
    screen = screens.dialog('touch a.txt')
    port.asked[1]!.answer({ allow: false })
    const again = await port.until(() => port.asked[2])
    expect(again).toMatchObject({ input: { command: 'touch b.txt' } })
    expect(again.reason).toContain('another dialog')
    expect(pressed).toEqual([])
    port.asked[0]!.answer({ allow: true })
    await expect.poll(() => pressed).toEqual(['1'])
  })

  it('redelivers a message that Escape removed from the conversation (C25)', async () => {
    await start()
    const text = '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]'
    await hook('BeforeAgent', { prompt: text })
    await record({ id: 'r1', type: 'user', content: [{ text }] })
    await record({ id: 'r2', type: 'info', content: 'Request cancelled.' })
    await port.until(() => session.state === 'idle')
    expect(port.arrived.at(-1)).toMatchObject({
      ...{ ids: ['msg_1'], state: 'queued', evidence: expect.stringContaining('a person’s Escape') },
    })
  })

  it('keeps a dialog open while another tool has run', async () => {
    await start()
    await exec('touch a.txt')
    await hook('AfterTool', { tool_name: 'read_file', tool_input: { file_path: 'b.txt' } })
    expect(port.asked[0]!.isGone).toBe(false)
    expect(session.state).toBe('waiting_input')
  })

  it('reports a denial to the agent in its next turn, since the program ends this one (C9)', async () => {
    await startTurn()
    await exec('touch a.txt')
    screen = screens.dialog('touch a.txt')
    port.asked[0]!.answer({ allow: false, comment: 'not on a Friday' })
    await expect.poll(() => pressed).toEqual(['Escape'])
    await record({ id: 'r1', type: 'info', content: 'Request cancelled.' })
    await port.until(() => session.state === 'idle')
    expect(await hook('BeforeAgent', { prompt: 'next' })).toMatchObject({
      hookSpecificOutput: { additionalContext: expect.stringContaining('not on a Friday') },
    })
  })

  it('reports a turn as stopped only when the program does (C2)', async () => {
    await startTurn()
    const stopped = session.interrupt()
    await expect.poll(() => pressed).toEqual(['Escape'])
    await record({ id: 'r1', type: 'info', content: 'Request cancelled.' })
    expect(await stopped).toMatchObject({ stopped: true })
  })

  it('stays idle when hooks of a cancelled turn come late, and is busy again with the next turn', async () => {
    await startTurn()
    await record({ id: 'r1', type: 'info', content: 'Request cancelled.' })
    await port.until(() => session.state === 'idle')
    await hook('AfterTool', { tool_name: 'read_file', tool_input: {}, tool_response: {} })
    await exec('touch late')
    expect(session.state).toBe('idle')
    await hook('BeforeAgent', { prompt: 'once more' })
    await hook('AfterTool', { tool_name: 'read_file', tool_input: {}, tool_response: {} })
    expect(session.state).toBe('busy')
  })

  it('waits for a person when it suspects a loop in its answer', async () => {
    await startTurn()
    const loop = 'System: Potential loop detected. Details: …'
    await record({ id: 'r1', type: 'user', content: [{ text: loop }] })
    await hook('AfterAgent', { prompt: 'hello', prompt_response: 'again', stop_hook_active: false })
    expect(session.state).toBe('waiting_input')
    const halted = 'A potential loop was detected. This can happen. The request has been halted.'
    await record({ id: 'r2', type: 'info', content: halted })
    await port.until(() => session.state === 'idle')
  })

  it('ignores the transcript named when a session is resumed', async () => {
    open({ savedState: { transcript, isPrompted: true } })
    await session.hook!(
      {
        ...{ session_id: 'ses-1', transcript_path: join(folder, 'other.jsonl') },
        ...{ hook_event_name: 'SessionStart', source: 'resume' },
      },
      never,
    )
    await record({ id: 'r1', type: 'gemini', content: 'Here I am.' })
    await port.until(() => port.said.length > 0)
  })

  it('continues in another conversation that a person begins, and still finds messages of the first', async () => {
    await start()
    await record({
      id: 'r1',
      type: 'user',
      content: [{ text: '[ORCHUB MESSAGE msg_1]\n[END ORCHUB MESSAGE msg_1]' }],
    })
    const other = join(folder, 'other.jsonl')
    await writeFile(other, '')
    await session.hook!(
      { session_id: 'ses-2', transcript_path: other, hook_event_name: 'SessionStart', source: 'clear' },
      never,
    )
    await port.until(() => (port.savedState as { sessionId?: string } | undefined)?.sessionId === 'ses-2')
    expect(port.savedState).toMatchObject({ transcript: other, earlier: [transcript], since: 0 })
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
    expect(await session.locate(['msg_2'])).toMatchObject([{ at: 'absent' }])
    screen = screens.draft
    expect(await session.locate(['msg_2'])).toMatchObject([{ at: 'unknown' }])
  })

  it.each([
    ['idle', 'idle', screens.empty],
    ['idle with a draft', 'idle', screens.draft],
    ['at work', 'busy', screens.working],
    ['in a dialog', 'unknown', screens.dialog('touch a.txt')],
  ] as const)('finds it again %s', async (_name, state, shown) => {
    screen = shown
    open({ found: true, savedState: { transcript, isPrompted: true } })
    await expect.poll(() => session.state).toBe(state)
  })

  it('ignores input that is not a hook of Gemini', async () => {
    open()
    expect(await session.hook!({ hook_event_name: 'Stop' }, never)).toEqual({})
    expect(await session.hook!('nonsense', never)).toEqual({})
    expect(session.state).toBe('initializing')
  })

  it('asks nothing once its process has ended', async () => {
    await start()
    await exec('touch a.txt')
    session.onExit('exit status 1')
    expect(port.asked[0]!.isGone).toBe(true)
    expect(port.states.at(-1)).toEqual({ state: 'exited', evidence: 'exit status 1' })
  })
})
