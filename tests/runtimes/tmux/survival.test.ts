/** Survival of agents when panes, the client, the server or the service end. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createAnyProgram } from '../../../src/programs/any/program.ts'
import type { AgentProgram } from '../../../src/programs/program.ts'
import { findProcesses } from '../../../src/runtimes/processes.ts'
import type { AgentStart, Runtime, Session } from '../../../src/runtimes/runtime.ts'
import { createTmuxRuntime, type TmuxOptions } from '../../../src/runtimes/tmux/runtime.ts'
import { TmuxSavedState } from '../../../src/runtimes/tmux/saved-state.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
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

async function start(over: Partial<AgentStart> = {}, runtime = fixture.runtime): Promise<Session> {
  const session = await runtime.start(fixture.agent(over), port)
  await port.untilState('idle')
  return session
}

/** Another runtime on the same tmux server. */
const openRuntime = (over: Partial<TmuxOptions>) =>
  createTmuxRuntime({
    ...{ socket: fixture.socket, programs: [createAnyProgram()], clock: REAL_CLOCK, log: QUIET_LOG },
    ...{ bin: 'orc', ...over },
  })

const savedState = (from = port) => TmuxSavedState.parse(from.savedState)
const processesOf = (of: TmuxSavedState) => ({ mark: of.mark, leader: of.process })
const captured = () => fixture.tmux('capture-pane', '-p', '-t', savedState().pane)
const inputOff = (pane = savedState().pane) =>
  fixture.tmux('display-message', '-p', '-t', pane, '#{pane_input_off}')
const isTaken = { state: expect.stringMatching(/submitted|read/) }

/** The pid of the runtime's own client: `tmux -C`, a child of this process. */
function controlClients(): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0')
      const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1]
      const isOurs = words.includes(fixture.socket) && words.includes('-C') && Number(parent) === process.pid
      return isOurs ? [Number(name)] : []
    } catch {
      return []
    }
  })
}

describe('an agent in a pane', () => {
  it('has its identity in its environment, and nothing else has it', async () => {
    await start()
    const environment = readFileSync(`/proc/${savedState().process.pid}/environ`, 'latin1').split('\0')
    expect(environment).toEqual(
      expect.arrayContaining([
        'ORC_URL=http://127.0.0.1:1',
        'ORC_TOKEN=secret-token',
        'ORC_AGENT=alice',
        `ORC_SESSION=${savedState().mark}`,
        'ORC_BIN=/nowhere/orc',
      ]),
    )
    expect(environment.some((line) => /^TMUX(_PANE)?=/.test(line))).toBe(false)
    expect(fixture.tmux('show-environment', '-g')).not.toContain('secret-token')
    expect(fixture.tmux('list-panes', '-a', '-F', '#{pane_start_command}')).not.toContain('secret-token')
    expect(JSON.stringify(savedState())).not.toContain('secret-token')
    const folder = fixture.agent().folder
    for (const file of readdirSync(folder)) {
      expect(readFileSync(join(folder, file), 'utf8')).not.toContain('secret-token')
    }
  })

  it('gets the environment of the service, and the tmux server does not', async () => {
    const environment = { ...process.env, JAVA_HOME: '/opt/java', API_KEY: `it's\n"two lines"`, UID: '7' }
    const runtime = openRuntime({ environment })
    const session = await start({}, runtime)
    const found = readFileSync(`/proc/${savedState().process.pid}/environ`, 'latin1').split('\0')
    expect(found).toEqual(
      expect.arrayContaining([
        'JAVA_HOME=/opt/java',
        `API_KEY=it's\n"two lines"`,
        'UID=7',
        'TERM=screen-256color',
      ]),
    )
    expect(fixture.tmux('show-environment', '-g')).not.toMatch(/JAVA_HOME|API_KEY/)
    await session.stop()
    await runtime.close!()
  })

  it('leaves no process when it is stopped, not even a daemon (C15)', async () => {
    const session = await start()
    await session.deliver(turnOf('msg_1', 'daemon'))
    const agent = processesOf(savedState())
    await expect.poll(async () => (await findProcesses(agent)).length, { timeout: 5000 }).toBeGreaterThan(1)
    await session.stop()
    expect(await findProcesses(agent)).toEqual([])
    expect(await fixture.leftovers!()).toEqual([])
    expect(fixture.panes()).toHaveLength(1)
  })

  it('is ended even if it was suspended or ignores signals', async () => {
    const deaf = "trap '' TERM HUP; printf '> '; while :; do sleep 1; done"
    const session = await start({ settings: { ...fixture.settings(), command: ['sh', '-c', deaf] } })
    process.kill(savedState().process.pid, 'SIGSTOP')
    await session.stop()
    expect(await fixture.leftovers!()).toEqual([])
  })

  it('is reported as exited with its code and last lines, and its daemons end too', async () => {
    const session = await start()
    await session.deliver(turnOf('msg_1', 'daemon\nsay so long\nexit 4'))
    await port.untilState('exited')
    expect(session.state).toBe('exited')
    expect(port.states.at(-1)!.evidence).toContain('exited with 4')
    expect(port.states.at(-1)!.evidence).toContain('so long')
    await port.until(() => port.text().includes('\nso long'))
    await expect.poll(() => fixture.leftovers!(), { timeout: 5000 }).toEqual([])
  })

  it('is reported as exited when its process is killed', async () => {
    await start()
    process.kill(savedState().process.pid, 'SIGKILL')
    await port.untilState('exited')
    expect(port.states.at(-1)!.evidence).toContain('signal 9')
  })

  it('is reported as exited when a person closes its pane', async () => {
    await start()
    fixture.tmux('kill-pane', '-t', savedState().pane)
    await port.untilState('exited')
    expect(port.states.at(-1)!.evidence).toContain('closed')
  })

  it('does not get a message that arrives as it dies (C27)', async () => {
    const session = await start({
      settings: fixture.settings('alice', { enter_after_ms: 500, evidence_ms: 500 }),
    })
    const delivery = session.deliver(turnOf('msg_1', 'hello'))
    await expect.poll(captured).toContain('END ORCHUB')
    process.kill(savedState().process.pid, 'SIGKILL')
    expect(await delivery).toMatchObject({ state: 'uncertain' })
    expect(fixture.received()).toEqual([])
  })

  it('does not block other agents while it is suspended', async () => {
    const others = createRecordingPort()
    const slow = await start({ settings: fixture.settings('alice', { evidence_ms: 20_000 }) })
    const quick = await fixture.runtime.start(fixture.agent({ name: 'bob' }), others)
    await others.untilState('idle')
    process.kill(savedState().process.pid, 'SIGSTOP')
    const stuck = slow.deliver(turnOf('msg_1', 'x'.repeat(100_000)))
    const before = Date.now()
    expect(await quick.deliver(turnOf('msg_2', 'hello'))).toMatchObject(isTaken)
    expect(Date.now() - before).toBeLessThan(5000)
    process.kill(savedState().process.pid, 'SIGCONT')
    expect(await stuck).toMatchObject(isTaken)
  })
})

describe('a cancelled start', () => {
  const STARTING = new Error('it was stopped while it started')

  /** Launches agents of a program that never begins to follow its pane. */
  async function openHanging() {
    const program: AgentProgram = { ...createAnyProgram(), follow: () => new Promise(() => {}) }
    const runtime = openRuntime({ programs: [program] })
    runtimes.push(runtime)
    return runtime
  }
  const runtimes: Runtime[] = []
  afterEach(() => Promise.all(runtimes.splice(0).map((runtime) => runtime.close!())))

  it('ends an agent that was launched but is not followed yet (C15)', async () => {
    const gone = new AbortController()
    const starting = (await openHanging()).start(fixture.agent({ signal: gone.signal }), port)
    await port.until(() => TmuxSavedState.safeParse(port.savedState).success)
    await expect.poll(() => fixture.leftovers!()).not.toEqual([])
    gone.abort(STARTING)
    await expect(starting).rejects.toBe(STARTING)
    expect(await fixture.leftovers!()).toEqual([])
    expect(fixture.panes()).toHaveLength(1)
  })

  it('ends an agent that was found but is not followed yet', async () => {
    const session = await start()
    await session.leave()
    const gone = new AbortController()
    const found = fixture.agent({ savedState: port.savedState, signal: gone.signal })
    const starting = (await openHanging()).start(found, createRecordingPort())
    setTimeout(() => gone.abort(STARTING), 500)
    await expect(starting).rejects.toBe(STARTING)
    expect(await fixture.leftovers!()).toEqual([])
  })

  it('ends soon even if tmux hangs, and its processes can be ended without tmux', async () => {
    const session = await start()
    await session.leave()
    const server = Number(fixture.tmux('display-message', '-p', '#{pid}'))
    process.kill(server, 'SIGSTOP')
    try {
      const gone = new AbortController()
      const starting = fixture.runtime.start(
        fixture.agent({ savedState: port.savedState, signal: gone.signal }),
        createRecordingPort(),
      )
      setTimeout(() => gone.abort(STARTING), 200)
      await expect(starting).rejects.toBe(STARTING)
      const discarded = fixture.runtime.discard!(port.savedState)
      // The pid stays until tmux, its parent, continues.
      const alive = async () => (await findProcesses(processesOf(savedState()))).length
      await expect.poll(alive, { timeout: 8000 }).toBe(0)
      process.kill(server, 'SIGCONT')
      await discarded
      expect(fixture.panes()).toHaveLength(1)
    } finally {
      process.kill(server, 'SIGCONT')
    }
  })
})

describe('the title above a pane', () => {
  it('is the label of the session, whatever the program sets and whatever the label contains', async () => {
    const session = await start()
    session.setLabel!('alice · idle · 3 unread #[fg=red]#(touch x)\u001b]')
    const format = ['display-message', '-p', '-t', savedState().pane, '#{@orc_title}']
    await expect.poll(() => fixture.tmux(...format)).toBe('alice · idle · 3 unread  [fg=red] (touch x) ]')
  })
})

describe('twenty agents', () => {
  it('start, answer and stop, with four panes per window', async () => {
    const sh = `printf '\\033[?2004h> '; while read -r line; do case $line in *END*) echo "got msg_1"; printf '> ';; esac; done`
    const ports = Array.from({ length: 20 }, () => createRecordingPort())
    const team = await Promise.all(
      ports.map((each, n) => {
        const settings = { ...fixture.settings(`a${n}`), command: ['sh', '-c', sh] }
        return fixture.runtime.start(fixture.agent({ name: `a${n}`, settings }), each)
      }),
    )
    await Promise.all(ports.map((each) => each.untilState('idle', 25_000)))
    const windows = fixture.tmux('list-windows', '-t', '=orchub:', '-F', '#{window_panes}').split('\n')
    expect(windows).toEqual(['1', '4', '4', '4', '4', '4'])
    const arrivals = await Promise.all(team.map((session) => session.deliver(turnOf('msg_1', 'hello'))))
    for (const arrival of arrivals) expect(arrival).toMatchObject(isTaken)
    await Promise.all(team.map((session) => session.stop()))
    expect(fixture.panes()).toHaveLength(1)
    expect(await fixture.leftovers!()).toEqual([])
  })
})

describe('the connection to tmux', () => {
  it('is restored when its client is killed, and nothing is lost', async () => {
    const session = await start()
    for (const pid of controlClients()) process.kill(pid, 'SIGKILL')
    expect(await session.deliver(turnOf('msg_1', 'say hello'))).toMatchObject(isTaken)
    expect(fixture.received()).toHaveLength(1)
    process.kill(savedState().process.pid, 'SIGKILL')
    await port.untilState('exited')
  })

  it('causes no second copy when it is lost in the middle of a delivery (C25)', async () => {
    const session = await start({ settings: fixture.settings('alice', { enter_after_ms: 300 }) })
    const delivery = session.deliver(turnOf('msg_1', 'hello'))
    await expect.poll(captured).toContain('END ORCHUB')
    for (const pid of controlClients()) process.kill(pid, 'SIGKILL')
    await delivery
    expect(fixture.received()).toHaveLength(1)
    expect(inputOff()).toBe('0')
  })

  it('reports every agent as exited when the server is killed; the next start resumes the conversation on a new server', async () => {
    await start()
    process.kill(savedState().server.pid, 'SIGKILL')
    await port.untilState('exited')
    expect(port.states.at(-1)!.evidence).toContain('tmux server')
    const before = savedState()
    const session = await start({ savedState: port.savedState })
    expect(savedState().server.pid).not.toBe(before.server.pid)
    expect(await session.deliver(turnOf('msg_1', 'hello'))).toMatchObject(isTaken)
    expect(await findProcesses(processesOf(before))).toEqual([])
  })

  it('replaces a dead pane that was saved', async () => {
    await start()
    const before = savedState()
    process.kill(before.process.pid, 'SIGKILL')
    await port.untilState('exited')
    await start({ savedState: port.savedState })
    expect(savedState().pane).not.toBe(before.pane)
    expect(fixture.panes()).toHaveLength(2)
    expect(fixture.panes()).not.toContain(before.pane)
  })

  it('starts anew when the saved state is not its own', async () => {
    const session = await start({ savedState: { runtime: 'another', thing: 1 } })
    expect(session.state).toBe('idle')
  })

  it('ends the server with the last agent and not earlier', async () => {
    const session = await start()
    await session.stop()
    await fixture.runtime.close!()
    expect(() => fixture.tmux('list-sessions')).toThrow()
  })
})

describe('a restart of the service', () => {
  it('misses no text written meanwhile, and repeats none (C25)', async () => {
    const session = await start()
    await session.deliver(turnOf('msg_1', 'say before'))
    await port.until(() => port.text().includes('\nbefore'))
    await session.leave()
    await fixture.runtime.close!()
    fixture.tmux('send-keys', '-t', savedState().pane, 'say meanwhile', 'Enter')
    await expect.poll(() => fixture.received()).toHaveLength(2)
    const first = port
    port = createRecordingPort()
    await start({ savedState: first.savedState }, await fixture.reopen())
    await port.until(() => port.text().includes('meanwhile'))
    expect(port.text()).not.toContain('before')
    expect([...first.said, ...port.said].filter(({ text }) => /^meanwhile$/m.test(text))).toHaveLength(1)
  })

  it('repeats text with the same key if the service died before processing it (C25)', async () => {
    const { promise: never } = Promise.withResolvers<void>()
    const before = createRecordingPort({
      onText(utterance) {
        before.said.push(utterance)
        return never
      },
    })
    const session = await fixture.runtime.start(fixture.agent(), before)
    await before.untilState('idle')
    await session.deliver(turnOf('msg_1', 'say one'))
    await expect.poll(() => before.said.length).toBe(1)
    fixture.tmux('send-keys', '-t', savedState(before).pane, 'say two', 'Enter')
    await expect.poll(() => fixture.received()).toHaveLength(2)
    // Killed: nothing is left or closed in order.
    await start({ savedState: before.savedState }, await fixture.reopen())
    await port.until(() => port.said.length === 2)
    expect(port.said[0]).toEqual(before.said[0])
    expect(port.said[1]!.text).toContain('\ntwo')
    expect(port.said[1]!.key).not.toBe(port.said[0]!.key)
  })

  it('switches a keyboard on again that was off', async () => {
    const session = await start()
    fixture.tmux('select-pane', '-d', '-t', savedState().pane)
    await session.leave()
    await fixture.runtime.close!()
    const { savedState: saved } = port
    port = createRecordingPort()
    await start({ savedState: saved }, await fixture.reopen())
    expect(inputOff(TmuxSavedState.parse(saved).pane)).toBe('0')
  })
})

describe('tmux itself', () => {
  it('is reported as missing, with a hint, when it is not installed', async () => {
    const runtime = openRuntime({ tmux: '/nowhere/tmux' })
    await expect(runtime.start(fixture.agent(), port)).rejects.toMatchObject({
      code: 'RUNTIME_MISSING',
      message: expect.stringContaining('not installed'),
      hint: expect.stringContaining('Install tmux'),
    })
  })

  it('is refused when it is too old', async () => {
    const old = join(fixture.folder, 'tmux')
    writeFileSync(old, '#!/bin/sh\necho tmux 2.9a\n', { mode: 0o755 })
    const runtime = openRuntime({ tmux: old })
    await expect(runtime.start(fixture.agent(), port)).rejects.toMatchObject({
      code: 'RUNTIME_MISSING',
      message: expect.stringContaining('too old'),
    })
  })

  /** A tmux whose first clients are disconnected, as by a server that was just killed. */
  function createEndingTmux(times: number): TmuxFixture['runtime'] {
    const path = join(fixture.folder, 'tmux')
    const count = `$(ls "$(dirname "$0")" | grep -c '^ended-')`
    const script = [
      '#!/bin/sh',
      `case " $* " in *' -C '*) if [ ${count} -lt ${times} ]; then`,
      `touch "$(dirname "$0")/ended-$$"; echo '%exit server exited unexpectedly'; exit 1`,
      'fi ;; esac',
      'exec tmux "$@"',
    ]
    writeFileSync(path, script.join('\n'), { mode: 0o755 })
    return openRuntime({ tmux: path })
  }

  it('is started again when its client meets a server that is ending', async () => {
    const runtime = createEndingTmux(3)
    const session = await start({}, runtime)
    expect(readdirSync(fixture.folder).filter((name) => name.startsWith('ended-'))).toHaveLength(3)
    expect(await session.deliver(turnOf('msg_1', 'hello'))).toMatchObject(isTaken)
    await runtime.close!()
  })

  it('is started again when an earlier server never ends and disconnects every client', async () => {
    // As when a client creates its session just after `kill-server`.
    const hook = `set-hook -gu session-closed ; new-session -d -s orchub 'sleep 1000'`
    fixture.tmux('-f', '/dev/null', 'new-session', '-d', 'sleep 1000')
    fixture.tmux('set-hook', '-g', 'session-closed', hook)
    fixture.tmux('kill-server')
    expect(() => fixture.tmux('list-sessions')).toThrow('server exited unexpectedly')
    const session = await start()
    expect(await session.deliver(turnOf('msg_1', 'hello'))).toMatchObject(isTaken)
  })

  it('is not retried forever: the error names the reason', async () => {
    const runtime = createEndingTmux(1_000_000)
    await expect(runtime.start(fixture.agent(), port)).rejects.toMatchObject({
      code: 'RUNTIME_FAILED',
      message: 'tmux did not start: lost the connection to tmux: server exited unexpectedly',
    })
  })

  it('runs no unknown program', async () => {
    const runtime = openRuntime({ programs: [] })
    expect(runtime.check(fixture.agent())).toMatchObject([{ message: expect.stringContaining('any') }])
    await expect(runtime.start(fixture.agent(), port)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  })

  it('keeps its options to our session: nothing global is changed', async () => {
    await start()
    const changed = fixture.tmux('show-options', '-g').split('\n')
    expect(changed).toContain('update-environment[0] DISPLAY')
    expect(changed).toContain('default-size 80x24')
    expect(fixture.tmux('show-options', '-g', '-w')).toContain('remain-on-exit off')
  })
})
