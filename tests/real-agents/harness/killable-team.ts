/** A real team whose service is a process of its own: everything in it can be killed, and started again. */
import { execFile } from 'node:child_process'
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { parseId } from '../../../src/base/ids.ts'
import { type Client, createClient } from '../../../src/client/client.ts'
import type { ConfigInput } from '../../../src/config/config.ts'
import { createDaemon } from '../../fakes/daemon.ts'
import { startModelServer } from '../../fakes/model-server/model-server.ts'
import type { Play } from '../../fakes/model-server/play.ts'
import { receivedBy } from './received-messages.ts'
import { prepareTeamAgents, type TeamAgentsOptions } from './team-agents.ts'
import { TYPING_PAUSE_MS } from './terminal.ts'

const execute = promisify(execFile)
const PATIENCE_MS = 120_000
const START_MS = 120_000

export interface KillableTeamOptions extends Pick<TeamAgentsOptions, 'programs'> {
  readonly play: Play
  /** More members, as orc.yaml names them. */
  readonly others?: ConfigInput['agents']
}

export interface Noted {
  readonly type: string
  readonly actor: string
  readonly text: string
}

const DELIVERY_STATES = ['queued', 'written', 'submitted', 'read']

export type KillableTeam = Awaited<ReturnType<typeof openKillableTeam>>

let opened = 0

export async function openKillableTeam({ programs, play, others = {} }: KillableTeamOptions) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'orchub-killable-')))
  const model = await startModelServer({ play })
  const members = await prepareTeamAgents({ programs, folder, modelUrl: model.url })
  const socket = `orchub-killable-${process.pid}-${opened++}`
  const config = { ...members.config, agents: { ...members.agents, ...others }, tmux: { socket } }
  const daemon = await createDaemon(JSON.stringify(config))
  await daemon.start()
  const client: Client = createClient({ url: daemon.url, token: daemon.operatorToken() })
  // Beside the service, whether it lives or not.
  const database = new DatabaseSync(join(daemon.folder, '.orc', 'orc.db'), { readOnly: true })

  const tmux = async (...args: string[]) => (await execute('tmux', ['-L', socket, ...args])).stdout

  async function until<T>(
    what: string,
    look: () => Promise<T | undefined | false> | T | undefined | false,
    { patienceMs = PATIENCE_MS, everyMs = 10 } = {},
  ): Promise<T> {
    const deadline = Date.now() + patienceMs
    for (;;) {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen
      if (Date.now() > deadline) throw new Error(`never came to be: ${what}\n${await explain()}`)
      await sleep(everyMs)
    }
  }

  async function explain(): Promise<string> {
    const screens = await Promise.all(
      Object.keys(programs).map(async (name) => `--- ${name}\n${await screen(name).catch(String)}`),
    )
    const log = audit()
      .slice(-50)
      .map((entry) => `${entry.type} ${entry.actor}: ${entry.text}`)
    return [...log, ...screens, daemon.output().slice(-2000)].join('\n')
  }

  const audit = () =>
    database.prepare('SELECT type, actor, text FROM audit ORDER BY at, seq').all() as unknown as Noted[]

  /** The state that the service saved for an agent. */
  function savedState(name: string): {
    pane: string
    process: { pid: number }
    program: Record<string, unknown>
  } {
    const row = database.prepare('SELECT kept AS savedState FROM sessions WHERE agent = ?').get(name) as {
      savedState: string
    }
    return JSON.parse(row.savedState).value
  }

  function deliveryOf(id: string): string {
    const row = database.prepare('SELECT state FROM deliveries WHERE message = ?').get(parseId('msg', id)!)
    return (row as { state: string }).state
  }

  const screen = (name: string) => tmux('capture-pane', '-p', '-t', savedState(name).pane)

  async function stateOf(name: string): Promise<string | undefined> {
    const { agents } = await client.agents()
    return agents.find((agent) => agent.name === name)?.session
  }

  /** Polls rarely, because a starting program needs both cores. */
  async function becomes(name: string, state: 'idle' | 'exited' | 'error') {
    const is = async () => (await stateOf(name)) === state
    await until(`${name} is ${state}`, is, { patienceMs: START_MS, everyMs: 50 })
  }

  async function signal(name: string, what: NodeJS.Signals) {
    // tmux lets the process that it started go on at once when that is stopped, and its group with it.
    await members.signal(name, what, what === 'SIGSTOP' ? savedState(name).process.pid : undefined)
  }

  return {
    model,
    daemon,
    client,
    until,
    becomes,
    savedState,
    screen,
    tmux,
    signal,
    processes: members.processes,
    received: (name: string) => receivedBy(model, name),
    audit,
    async send(to: string, content: string): Promise<string> {
      const receipt = await client.command({ type: 'send_message', to, content })
      if (receipt.status !== 'delivered') throw new Error(JSON.stringify(receipt))
      return receipt.message_id
    },
    async act(action: string, target: string) {
      const receipt = await client.command({ type: 'request_action', action, target })
      if (receipt.status !== 'ok') throw new Error(JSON.stringify(receipt))
    },
    /** The delivery reached that state, or a later one. */
    reaches: (id: string, state: (typeof DELIVERY_STATES)[number]) =>
      until(
        `${id} is ${state}`,
        () => DELIVERY_STATES.indexOf(deliveryOf(id)) >= DELIVERY_STATES.indexOf(state),
      ),
    async mailOf(name: string) {
      return (await client.mailbox({ agent: name, filter: 'all' })).messages
    },
    /** Types like a person at the pane. */
    async type(name: string, text: string) {
      const { pane } = savedState(name)
      await tmux('send-keys', '-t', pane, '-l', '--', text)
      await until(`${name}'s screen shows it`, async () => (await screen(name)).includes(text))
      await sleep(TYPING_PAUSE_MS)
      await tmux('send-keys', '-t', pane, 'Enter')
    },
    /** Kills the service, the tmux server and all agents, like a power failure. */
    async killAll() {
      await daemon.kill()
      await tmux('kill-server').catch(() => {})
      for (const name of Object.keys(programs)) await members.kill(name)
    },
    /** Edits the saved state of a program while the service is down. */
    change(name: string, edit: (program: Record<string, unknown>) => Record<string, unknown>) {
      const writable = new DatabaseSync(join(daemon.folder, '.orc', 'orc.db'))
      const all = savedState(name)
      const changed = JSON.stringify({ runtime: 'tmux', value: { ...all, program: edit(all.program) } })
      writable.prepare('UPDATE sessions SET kept = ? WHERE agent = ?').run(changed, name)
      writable.close()
    },
    async close() {
      database.close()
      await daemon.close()
      await tmux('kill-server').catch(() => {})
      for (const name of Object.keys(programs)) await signal(name, 'SIGCONT')
      await members.end()
      await model.close()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
