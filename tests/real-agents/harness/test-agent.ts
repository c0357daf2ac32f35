/** A real agent program in the real tmux runtime, with a scripted model. */

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { AgentName } from '../../../scripts/install-agents.ts'
import type { AgentProgram } from '../../../src/programs/program.ts'
import type { Session } from '../../../src/runtimes/runtime.ts'
import { createTmuxRuntime } from '../../../src/runtimes/tmux/runtime.ts'
import { startModelServer } from '../../fakes/model-server/model-server.ts'
import type { Play } from '../../fakes/model-server/play.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { type Home, prepareHome } from './home.ts'
import { endProcessesOf, processesOf } from './leftovers.ts'
import { createRecordingPort, type RecordingPort } from './recording-port.ts'
import { TYPING_PAUSE_MS } from './terminal.ts'

const execute = promisify(execFile)

export interface TestAgentOptions {
  readonly agent: AgentName
  readonly program: AgentProgram
  readonly play: Play
  readonly role: string
  /** Under `with:`, beside the command and the environment. */
  readonly settings?: Record<string, unknown>
  /** Address of MCP and hooks; by default no server is there. */
  readonly url?: string
  /** Our own executable, for hooks that are commands. */
  readonly bin?: string
}

const clock = {
  now: () => Date.now(),
  after(ms: number, callback: () => void) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

let opened = 0

export async function openTestAgent(options: TestAgentOptions) {
  const { agent, program } = options
  const root = await mkdtemp(join(tmpdir(), `orc-${agent}-`))
  const model = await startModelServer({ play: options.play })
  const cwd = join(root, 'work')
  const folder = join(root, 'agent')
  const home: Home = await prepareHome(agent, {
    ...{ folder: join(root, 'home'), cwd, modelUrl: model.url, key: 'sk-ant-fake-dev' },
  })
  const socket = `orc-agent-${process.pid}-${opened++}`
  const problems: unknown[] = []
  const log = {
    ...QUIET_LOG,
    warn: (fields: Record<string, unknown>, text: string) => void problems.push({ text, ...fields }),
    error: (fields: Record<string, unknown>, text: string) => void problems.push({ text, ...fields }),
  }
  const newRuntime = () =>
    createTmuxRuntime({
      ...{ socket, programs: [program], clock, log, bin: options.bin ?? process.execPath },
      // All that it needs is in the settings of its home.
      environment: {},
    })
  let runtime = newRuntime()
  const tmux = async (...args: string[]) => (await execute('tmux', ['-L', socket, ...args])).stdout
  const paneOf = (savedState: unknown) => (savedState as { pane: string }).pane
  const screen = (port: RecordingPort) => tmux('capture-pane', '-p', '-t', paneOf(port.savedState))
  const type = (port: RecordingPort, text: string) =>
    tmux('send-keys', '-t', paneOf(port.savedState), '-l', '--', text)
  const press = (port: RecordingPort, ...keys: string[]) =>
    tmux('send-keys', '-t', paneOf(port.savedState), ...keys)

  async function look(
    port: RecordingPort,
    isSo: (text: string) => boolean,
    never: string,
    timeoutMs: number,
  ) {
    const until = Date.now() + timeoutMs
    for (;;) {
      const text = await screen(port)
      if (isSo(text)) return text
      if (Date.now() > until) throw new Error(`The screen never ${never}:\n${text}`)
      await sleep(50)
    }
  }
  const shows = (port: RecordingPort, what: RegExp, timeoutMs = 60_000) =>
    look(port, (text) => what.test(text), `shows ${what}`, timeoutMs)

  /** Starts the agent, or takes it up again with what an earlier port kept. */
  async function start(earlier?: unknown): Promise<{ session: Session; port: RecordingPort }> {
    const port = createRecordingPort()
    const session = await runtime.start(
      {
        ...{ name: 'dev', program: program.name, prompt: options.role, cwd, folder, savedState: earlier },
        settings: { ...home.settings, ...options.settings },
        nonce: 'n0nce',
        credentials: async () => ({ url: options.url ?? 'http://127.0.0.1:9', token: 'orc_token_of_dev' }),
      },
      port.port,
    )
    return { session, port }
  }

  return {
    model,
    cwd,
    folder,
    home,
    problems,
    start,
    /** As if the service had been killed: nothing of the runtime is left but the panes. */
    async restartService() {
      await runtime.close?.()
      runtime = newRuntime()
    },
    screen,
    /** As a person types: no bracketed paste, no Enter. */
    type,
    press,
    /** As a person enters a line: it is seen to stand in the input box, and Enter follows at the pace of a hand. */
    async enter(port: RecordingPort, line: string) {
      await type(port, line)
      await shows(port, new RegExp(`[›❯>]\\s${RegExp.escape(line)}\\s*$`, 'm'))
      await sleep(TYPING_PAUSE_MS)
      await press(port, 'Enter')
    },
    shows,
    hides: (port: RecordingPort, what: RegExp, timeoutMs = 60_000) =>
      look(port, (text) => !what.test(text), `hides ${what}`, timeoutMs),
    /** The machine is switched off: the terminals' server and everything in them. */
    async killAll() {
      await tmux('kill-server').catch(() => {})
      await endProcessesOf(home.env.HOME)
    },
    left: () => processesOf(home.env.HOME),
    async close() {
      await runtime.close?.()
      await tmux('kill-server').catch(() => {})
      await endProcessesOf(home.env.HOME)
      await model.close()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

export type TestAgent = Awaited<ReturnType<typeof openTestAgent>>
