/** A real agent program in the real tmux runtime, with a scripted model, and one conversation with it. */

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import type { AgentName } from '../../../scripts/install-agents.ts'
import type { FollowerLog } from '../../../src/programs/line-follower.ts'
import type { AgentProgram } from '../../../src/programs/program.ts'
import type { Session } from '../../../src/runtimes/runtime.ts'
import { createTmuxRuntime } from '../../../src/runtimes/tmux/runtime.ts'
import { type ModelServer, startModelServer } from '../../fakes/model-server/model-server.ts'
import type { ModelReply, Play } from '../../fakes/model-server/play.ts'
import { QUIET_LOG } from '../../fakes/quiet-log.ts'
import { REAL_CLOCK } from '../../fakes/real-clock.ts'
import { type Asked, createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'
import { type Home, prepareHome } from './home.ts'
import type { HookServer } from './hook-server.ts'
import { endProcessesOf, processesOf } from './leftovers.ts'
import { TYPING_PAUSE_MS } from './terminal.ts'

const execute = promisify(execFile)

export const envelope = (id: string, content: string) =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\nTitle: A task\nPriority: normal\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`

/** A command in the words of an agent. */
export const COMMAND = '<orc-command name="send_message" to="lead">All is well.</orc-command>'
export const ROLE = 'You are dev, of the crew of the Argo. "Quotes", \\ and $HOME stay.'

/** A reply of the model that waits until a test lets it go. */
export function createHeldReply() {
  let release: (reply: ModelReply) => void = () => {}
  return {
    reply: () => new Promise<ModelReply>((resolve) => (release = resolve)),
    letGo: (reply: ModelReply) => release(reply),
  }
}

interface TestAgentOptions {
  readonly agent: AgentName
  readonly program: (options: { readonly log: FollowerLog }) => AgentProgram
  readonly play: Play
  readonly role: string
  /** Under `with:`, beside the command and the environment. */
  readonly settings?: Record<string, unknown>
  /** Receives MCP calls and hooks. */
  readonly hookServer?: HookServer
  /** Address of MCP and hooks without a hook server; by default no server is there. */
  readonly url?: string
  /** Our own executable, for hooks that are commands. */
  readonly bin?: string
}

const PATIENCE_MS = 90_000
/** Gemini takes half a minute for 100 KB before it calls the model, and minutes on a busy machine. */
const READ_WITHIN_MS = 300_000

let opened = 0

export async function openTestAgent(options: TestAgentOptions) {
  const { agent, hookServer } = options
  const root = await mkdtemp(join(tmpdir(), `orc-${agent}-`))
  const model: ModelServer = await startModelServer({ play: options.play })
  const cwd = join(root, 'work')
  const folder = join(root, 'agent')
  const home: Home = await prepareHome(agent, {
    ...{ folder: join(root, 'home'), cwd, modelUrl: model.url, key: 'sk-ant-fake-dev' },
  })
  const socket = `orc-agent-${process.pid}-${opened++}`
  const problems: unknown[] = []
  const note = (fields: Record<string, unknown>, text: string) => void problems.push({ text, ...fields })
  const log = { ...QUIET_LOG, warn: note, error: note }
  const program = options.program({ log })
  const newRuntime = () =>
    createTmuxRuntime({
      ...{ socket, programs: [program], clock: REAL_CLOCK, log, bin: options.bin ?? process.execPath },
      // All that it needs is in the settings of its home.
      environment: {},
    })
  let runtime = newRuntime()
  let session: Session
  let port: RecordingPort
  let messages = 0
  const met = new Set<Asked>()

  const tmux = async (...args: string[]) => (await execute('tmux', ['-L', socket, ...args])).stdout
  const pane = () => (port.savedState as { pane: string }).pane
  const screen = () => tmux('capture-pane', '-p', '-t', pane())
  const type = (text: string) => tmux('send-keys', '-t', pane(), '-l', '--', text)
  const press = (...keys: string[]) => tmux('send-keys', '-t', pane(), ...keys)

  async function look(isSo: (text: string) => boolean, never: string, timeoutMs: number) {
    const until = Date.now() + timeoutMs
    for (;;) {
      const text = await screen()
      if (isSo(text)) return text
      if (Date.now() > until) throw new Error(`The screen never ${never}:\n${text}`)
      await sleep(50)
    }
  }
  const shows = (what: RegExp, timeoutMs = 60_000) =>
    look((text) => what.test(text), `shows ${what}`, timeoutMs)

  /** Starts the agent, or takes it up again with the state that an earlier session saved. */
  async function start(earlier?: unknown): Promise<void> {
    const next = createRecordingPort({}, PATIENCE_MS)
    session = await runtime.start(
      {
        ...{ name: 'dev', program: program.name, prompt: options.role, cwd, folder, savedState: earlier },
        settings: { ...home.settings, ...options.settings },
        nonce: 'n0nce',
        credentials: async () => ({
          url: hookServer?.url ?? options.url ?? 'http://127.0.0.1:9',
          token: 'orc_token_of_dev',
        }),
      },
      next,
    )
    port = next
    hookServer?.attach(session)
  }

  /** As if the service had been killed: nothing of the runtime is left but the panes. Returns the state saved before. */
  async function restartService(): Promise<unknown> {
    const { savedState } = port
    hookServer?.attach(undefined)
    await session.leave()
    await runtime.close?.()
    runtime = newRuntime()
    return savedState
  }

  /** Kills the tmux server and everything in it, like a power failure. */
  async function killAll() {
    await tmux('kill-server').catch(() => {})
    await endProcessesOf(home.env.HOME)
  }

  const idle = () => port.until(() => session.state === 'idle', 60_000)
  const nextId = () => `msg_${++messages}`
  const read = (id: string) =>
    port.until(() => port.arrived.find((one) => one.state === 'read' && one.ids.includes(id)), READ_WITHIN_MS)
  /** The call that asks the model about that text. */
  const callWith = (text: string) =>
    model.waitFor(({ request }) => request?.side === false && request.userText.includes(text))
  const callAbout = (id: string) => callWith(`MESSAGE ${id}]`)

  async function send(content: string) {
    await idle()
    const id = nextId()
    const arrival = await session.deliver({ text: envelope(id, content), ids: [id] })
    return { id, arrival }
  }

  /** Sends a message that the agent accepts; resolves with its id. */
  async function submit(content: string): Promise<string> {
    const { id, arrival } = await send(content)
    expect(arrival).toMatchObject({ state: 'submitted' })
    return id
  }

  const newQuestion = () => port.asked.find((one) => !one.isGone && !met.has(one))

  /** Each permission dialog once. */
  async function openQuestion(): Promise<Asked> {
    const question = await port.until(newQuestion)
    met.add(question)
    return question
  }

  return {
    model,
    cwd,
    folder,
    home,
    problems,
    get session() {
      return session
    },
    get port() {
      return port
    },
    start,
    restartService,
    killAll,
    screen,
    /** Types like a person: no bracketed paste, no Enter. */
    type,
    press,
    /** Enters a line like a person: waits until the input box shows it, and presses Enter after a pause. */
    async enter(line: string) {
      await type(line)
      await shows(new RegExp(`[›❯>]\\s${RegExp.escape(line)}\\s*$`, 'm'))
      await sleep(TYPING_PAUSE_MS)
      await press('Enter')
    },
    shows,
    hides: (what: RegExp, timeoutMs = 60_000) => look((text) => !what.test(text), `hides ${what}`, timeoutMs),
    idle,
    busy: () => port.until(() => session.state === 'busy'),
    nextId,
    spoken: () => port.said.map(({ text }) => text),
    read,
    hasRead: (id: string) => port.arrived.some((one) => one.state === 'read' && one.ids.includes(id)),
    callWith,
    callAbout,
    send,
    submit,
    newQuestion,
    openQuestion,
    /** Sends a message that makes the program ask for permission. */
    async askFor(content: string): Promise<Asked> {
      await send(content)
      return await openQuestion()
    },
    /** Sends ten messages, each after the one before was read, and checks that the model was asked about each in order. */
    async exchangeTen() {
      const before = model.calls('dev').length
      const ids: string[] = []
      for (let n = 0; n < 10; n++) {
        const id = await submit(`number ${n}`)
        await read(id)
        ids.push(id)
      }
      await idle()
      const calls = model.calls('dev').slice(before)
      expect(calls.map(({ request }) => /number \d/.exec(request!.userText)?.[0])).toEqual(
        ids.map((_, n) => `number ${n}`),
      )
      return { ids, calls }
    },
    /** The model gets the message as it was sent, or as `received`, and the message is found again. */
    async deliverUnchanged(content: string, received = content) {
      const id = await submit(content)
      await read(id)
      expect((await callAbout(id)).request!.userText).toContain(envelope(id, received))
      expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
    },
    /** Tells the agent a word and kills everything, once the program is `settled`; resolves with the id of that message. */
    async resumeAfterKill(settled: () => Promise<unknown> = idle): Promise<string> {
      const id = await submit('remember the word xylophone')
      await read(id)
      await settled()
      const savedState = await restartService()
      await killAll()
      await start(savedState)
      await idle()
      return id
    },
    /** The resumed conversation holds the word and the message; resolves with the call that shows it. */
    async recallWord(id: string) {
      const next = await submit('which word was it?')
      await read(next)
      const call = await callAbout(next)
      expect(call.body).toContain('xylophone')
      expect(await session.locate([id])).toMatchObject([{ at: 'submitted' }])
      await idle()
      return call
    },
    left: () => processesOf(home.env.HOME),
    async close() {
      await runtime.close?.()
      await killAll()
      await model.close()
      await hookServer?.close()
      await rm(root, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

export type TestAgent = Awaited<ReturnType<typeof openTestAgent>>
