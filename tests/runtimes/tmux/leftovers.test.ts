/** Agents left behind by a killed service, and how the next service treats them. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAnyProgram } from '../../../src/programs/any/program.ts'
import type { AgentProgram } from '../../../src/programs/program.ts'
import { findProcesses } from '../../../src/runtimes/processes.ts'
import type { AgentStart } from '../../../src/runtimes/runtime.ts'
import { TmuxSavedState } from '../../../src/runtimes/tmux/saved-state.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { turnOf } from '../conformance.ts'
import { openTmuxFixture, type TmuxFixture } from '../tmux-fixture.ts'

let fixture: TmuxFixture
let port: RecordingPort
let resumed: unknown[]
beforeEach(async () => {
  resumed = []
  const any = createAnyProgram()
  const launch: AgentProgram['launch'] = (order) => {
    resumed.push(order.resume)
    return any.launch(order)
  }
  const programs = [
    { ...any, launch },
    { ...any, launch, name: 'other' },
  ]
  fixture = await openTmuxFixture({ programs })
  port = createRecordingPort()
})
afterEach(() => fixture.close())

async function start(over: Partial<AgentStart> = {}, runtime = fixture.runtime) {
  const session = await runtime.start(fixture.agent(over), port)
  await port.untilState('idle')
  return session
}

/** Starts the agent in the next service, as after a kill: nothing was closed. */
async function startAfterKill(savedState: unknown, over: Partial<AgentStart> = {}) {
  port = createRecordingPort()
  return start({ savedState, ...over }, await fixture.reopen())
}

/** Starts an agent in a service that is killed right after the launch; resolves with the saved state. */
async function killedAfterLaunch(over: Partial<AgentStart> = {}): Promise<{ mark: string }> {
  const { promise: launched, resolve } = Promise.withResolvers<void>()
  let first: unknown
  void fixture.runtime.start(fixture.agent(over), {
    ...port,
    saveState(value) {
      if (first === undefined) {
        first = JSON.parse(JSON.stringify(value))
        return Promise.resolve()
      }
      resolve()
      return new Promise(() => {})
    },
  })
  await launched
  return first as { mark: string }
}

const marked = async (mark: string) => (await findProcesses({ mark })).length
const isTaken = { state: expect.stringMatching(/submitted|read/) }

describe('a service that is killed between a launch and saving its state', () => {
  it('leaves a mark by which the next service ends that process before it starts its own (C15)', async () => {
    const savedState = await killedAfterLaunch()
    await expect.poll(() => marked(savedState.mark)).toBeGreaterThan(0)
    await startAfterKill(savedState)
    expect(await marked(savedState.mark)).toBe(0)
    expect(fixture.panes()).toHaveLength(2)
    expect(await fixture.leftovers!()).toHaveLength(1)
  })

  it('leaves the conversation that was to be resumed', async () => {
    const conversation = { run: 'the last one' }
    const savedState = await killedAfterLaunch({
      savedState: { mark: 'none', programName: 'any', program: conversation },
    })
    await startAfterKill(savedState)
    expect(resumed).toEqual([conversation, conversation])
  })

  it('leaves a pane with the name of its agent, in case the mark is lost too (C15)', async () => {
    const { mark } = await killedAfterLaunch()
    await startAfterKill(undefined)
    expect(await marked(mark)).toBe(0)
    expect(fixture.panes()).toHaveLength(2)
  })

  it('leaves agents of other names alone', async () => {
    const others = createRecordingPort()
    await fixture.runtime.start(fixture.agent({ name: 'alice the second' }), others)
    const { mark } = TmuxSavedState.parse(others.savedState)
    await start()
    expect(await marked(mark)).toBeGreaterThan(0)
  })
})

describe('an agent that is found again', () => {
  it('is restarted without its conversation when its program changed', async () => {
    await start()
    const before = TmuxSavedState.parse(port.savedState)
    await startAfterKill(port.savedState, { program: 'other' })
    expect(await marked(before.mark)).toBe(0)
    expect(fixture.panes()).not.toContain(before.pane)
    expect(resumed).toEqual([undefined, undefined])
    expect(TmuxSavedState.parse(port.savedState).programName).toBe('other')
  })

  it('is restarted when it cannot be followed', async () => {
    await start()
    const before = TmuxSavedState.parse(port.savedState)
    const session = await startAfterKill({ ...before, program: { run: 7 } })
    expect(await marked(before.mark)).toBe(0)
    expect(fixture.panes()).toHaveLength(2)
    expect(await session.deliver(turnOf('msg_1', 'hello'))).toMatchObject(isTaken)
  })

  it('gets a message that was left unsubmitted at its prompt, and then the next (C25)', async () => {
    const settings = fixture.settings('alice', { enter_after_ms: 9000 })
    const session = await start({ settings })
    void session.deliver(turnOf('msg_1', 'hello'))
    const pane = TmuxSavedState.parse(port.savedState).pane
    const shown = () => fixture.tmux('capture-pane', '-p', '-t', pane)
    await expect.poll(shown).toContain('[END ORCHUB MESSAGE msg_1]')
    const next = await startAfterKill(port.savedState)
    expect(next.hasPendingInput?.()).toBe(true)
    expect(await next.locate(['msg_1'])).not.toMatchObject([{ at: 'absent' }])
    expect(next.hasPendingInput?.()).toBe(false)
    expect(fixture.tmux('display-message', '-p', '-t', pane, '#{pane_input_off}')).toBe('0')
    await expect.poll(async () => (await next.locate(['msg_1']))[0]?.at).toBe('submitted')
    expect(await next.deliver(turnOf('msg_2', 'hello'))).toMatchObject(isTaken)
    const texts = fixture.received().map(({ text }) => text)
    expect(texts).toEqual([turnOf('msg_1', 'hello').text, turnOf('msg_2', 'hello').text])
  })
})

describe('files with secrets or messages in them', () => {
  const folder = () => fixture.agent().folder

  it('are removed at the next start after a killed service', async () => {
    await start()
    writeFileSync(join(folder(), 'orc-12-3-4.txt'), 'a message')
    await startAfterKill(port.savedState)
    expect(readdirSync(folder()).filter((name) => name.startsWith('orc-'))).toEqual([])
  })

  it('are removed from tmux too, and were typed nowhere, if the service was killed before the paste (C25)', async () => {
    await start()
    const { text } = turnOf('msg_1', 'hello')
    writeFileSync(join(folder(), 'orc-12-3-4.txt'), text)
    fixture.tmux('set-buffer', '-b', 'orc-12-3-4', text)
    const buffers = () => fixture.tmux('list-buffers', '-F', '#{buffer_sample}')
    expect(buffers()).toContain('msg_1')
    const next = await startAfterKill(port.savedState)
    expect(buffers()).toBe('')
    expect(await next.locate(['msg_1'])).toMatchObject([{ at: 'absent' }])
    expect(await next.deliver(turnOf('msg_1', 'hello'))).toMatchObject(isTaken)
    expect(fixture.received().map(({ text }) => text)).toEqual([turnOf('msg_1', 'hello').text])
  })

  it('are removed when the pane cannot be started', async () => {
    const name = 'alice'
    const over = fixture.agent({ name, folder: join(fixture.folder, 'agents', 'bell\u0007') })
    await expect(fixture.runtime.start({ ...over, settings: fixture.settings(name) }, port)).rejects.toThrow()
    expect(existsSync(join(over.folder, 'launch.sh'))).toBe(false)
  })
})

it('names the invalid setting when a program cannot use its settings', async () => {
  const starting = fixture.runtime.start(fixture.agent({ settings: { command: 7 } }), port)
  await expect(starting).rejects.toMatchObject({
    code: 'RUNTIME_FAILED',
    message: expect.stringMatching(/^any got unexpected data \(command: .*\)$/),
  })
})

describe('the saved state of an agent that no longer runs', () => {
  it('suffices to end its processes and its pane', async () => {
    await start()
    const savedState = TmuxSavedState.parse(port.savedState)
    const next = await fixture.reopen()
    await next.discard!(savedState)
    expect(await findProcesses({ mark: savedState.mark })).toEqual([])
    await next.discard!(savedState)
    await next.discard!('nothing of ours')
  })
})
