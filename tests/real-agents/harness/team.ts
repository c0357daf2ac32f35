/** A whole team on the real product: service, store, tmux, agent programs; only the model is scripted. */
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AuditEntry } from '../../../src/audit/entry.ts'
import { parseId } from '../../../src/base/ids.ts'
import { type ConfigInput, defineConfig } from '../../../src/config/config.ts'
import { type Orchub, startOrchub } from '../../../src/main.ts'
import { type ModelServer, startModelServer } from '../../fakes/model-server/model-server.ts'
import type { Play } from '../../fakes/model-server/play.ts'
import { receivedBy } from './received-messages.ts'
import { prepareTeamAgents, type TeamAgentsOptions } from './team-agents.ts'
import { openTerminal, type Terminal } from './terminal.ts'

export interface TeamOptions extends Pick<TeamAgentsOptions, 'programs' | 'runtime'> {
  readonly play: Play
  /** Adds to or overrides the orc.yaml generated for its agents. */
  readonly config?: Partial<ConfigInput> | ((set: TeamSetup) => Partial<ConfigInput>)
}

export interface TeamSetup {
  readonly agents: ConfigInput['agents']
  readonly modelUrl: string
}

export interface Mail {
  id: string
  from: string
  title: string
  content: string
  delivery: string
}

/** Programs take their time on a busy machine, and much more of it to start. */
const PATIENCE_MS = 120_000
const START_MS = 120_000

export type RealTeam = Awaited<ReturnType<typeof openTeam>>

export async function openTeam({ programs, play, runtime = 'tmux', config = {} }: TeamOptions) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'orchub-team-')))
  const model: ModelServer = await startModelServer({ play })
  const members = await prepareTeamAgents({ programs, folder, runtime, modelUrl: model.url })
  const more = typeof config === 'function' ? config({ agents: members.agents, modelUrl: model.url }) : config
  const input: ConfigInput = { ...members.config, service: { port: 0 }, ...more }
  const entries: AuditEntry[] = []
  const terminals: Terminal[] = []
  let orchub: Orchub = await start()

  async function start() {
    const started = await startOrchub({
      config: defineConfig(input, { file: join(folder, 'orc.yaml'), env: {} }),
    })
    started.engine.store.onCommit((committed) => void entries.push(...committed))
    return started
  }

  async function until<T>(
    what: string,
    look: () => Promise<T | undefined | false> | T | undefined | false,
    patienceMs = PATIENCE_MS,
  ) {
    const deadline = Date.now() + patienceMs
    for (;;) {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen as T
      if (Date.now() > deadline) throw new Error(`never came to be: ${what}\n${await explain()}`)
      await sleep(20)
    }
  }

  async function explain(): Promise<string> {
    const screens = await Promise.all(
      // With those that were started for a run.
      orchub.engine.team().names.map(async (name) => {
        const session = orchub.engine.sessions.session(name)
        const screen = await session?.screen?.(30).catch((error: Error) => error.message)
        return `--- ${name} is ${session?.state}\n${screen ?? ''}`
      }),
    )
    const log = entries.slice(-40).map((entry) => `${entry.type} ${entry.actor}: ${entry.text}`)
    return [...log, ...screens].join('\n')
  }

  /** Executes a command as the operator, who needs no rule. */
  async function order(type: string, fields: Record<string, unknown>) {
    return await orchub.engine.handle({ kind: 'operator' }, { type, fields })
  }

  async function deliveryOf(id: string): Promise<string> {
    const row = await orchub.engine.store.get<{ state: string }>(
      'SELECT state FROM deliveries WHERE message = ?',
      [parseId('msg', id)!],
    )
    return row!.state
  }

  return {
    folder,
    model,
    entries,
    until,
    explain,
    order,
    deliveryOf,
    get orchub() {
      return orchub
    },
    processes: members.processes,
    /** Everything that runs of that agent, at once. */
    kill: members.kill,
    received: (name: string) => receivedBy(model, name),
    state: (name: string) => orchub.engine.sessions.session(name)?.state,
    idle: (name: string) =>
      until(`${name} is idle`, () => orchub.engine.sessions.session(name)?.state === 'idle', START_MS),
    becomes: (name: string, state: string) =>
      until(`${name} is ${state}`, () => orchub.engine.sessions.session(name)?.state === state),
    /** Resolves with the id of the message. */
    async send(to: string, content: string, more: Record<string, unknown> = {}): Promise<string> {
      const receipt = await order('send_message', { to, content, ...more })
      if (receipt.status !== 'delivered') throw new Error(JSON.stringify(receipt))
      return receipt.message_id
    },
    arrives: (id: string) => until(`${id} is read`, async () => (await deliveryOf(id)) === 'read'),
    /** The audit's entries of that type, from that many on. */
    audited: (type: string, from = 0) => entries.slice(from).filter((entry) => entry.type === type),
    async mailOf(name: string): Promise<Mail[]> {
      const receipt = await order('query_mailbox', { agent: name, filter: 'all' })
      if (receipt.status !== 'ok') throw new Error(JSON.stringify(receipt))
      return receipt.details!.messages as Mail[]
    },
    screen: async (name: string) => await orchub.engine.sessions.session(name)!.screen!(60),
    /** A person sits down at the agent's pane with a terminal of their own, as with `orc attach`. */
    async attachTerminal(name: string): Promise<Terminal> {
      const home = join(folder, 'homes', 'person')
      await mkdir(home, { recursive: true })
      const { viewCommand: view } = orchub.engine.sessions.session(name)!
      const terminal = await openTerminal({
        // Theirs is a pane of another tmux, which tmux would warn of.
        argv: ['env', '-u', 'TMUX', ...view!],
        cwd: folder,
        env: { HOME: home, PATH: process.env.PATH!, LANG: 'C.UTF-8', TERM: 'xterm-256color' },
      })
      terminals.push(terminal)
      // Keys typed before tmux has attached are echoed but do not reach the agent.
      await terminal.shows(new RegExp(`${RegExp.escape(name)} · `))
      return terminal
    },
    /** Restarts the service; by default the agents keep running. */
    async restart(agents: 'leave' | 'end' = 'leave') {
      await orchub.close(agents)
      orchub = await start()
    },
    async close() {
      for (const terminal of terminals) await terminal.close()
      await orchub.close('end')
      await model.close()
      await members.end()
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
