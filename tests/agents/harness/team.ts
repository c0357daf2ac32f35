/** A whole team on the real product: service, store, tmux, agent programs; only the model is scripted. */
import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { AgentName } from '../../../scripts/install-agents.ts'
import { type ConfigInput, defineConfig, type ProgramName } from '../../../src/config.ts'
import { type Orchub, startOrchub } from '../../../src/main.ts'
import type { AuditEntry } from '../../../src/model/audit-entry.ts'
import { type ModelServer, startModelServer } from '../../fakes/model-server/model-server.ts'
import type { Play } from '../../fakes/model-server/play.ts'
import { prepareHome } from './home.ts'
import { endProcessesOf } from './leftovers.ts'

export interface TeamOptions {
  /** Agent → which installed program it is. */
  readonly cast: Readonly<Record<string, AgentName>>
  readonly play: Play
  readonly runtime?: 'tmux' | 'acp'
  readonly config?: Partial<ConfigInput>
}

export interface Mail {
  id: string
  from: string
  title: string
  content: string
  delivery: string
}

const PROGRAM: Record<AgentName, ProgramName> = {
  'claude-code': 'claude-code',
  'claude-code-2.1.197': 'claude-code',
  'claude-agent-acp': 'claude-code',
  codex: 'codex',
  'codex-acp': 'codex',
  gemini: 'gemini',
  opencode: 'opencode',
}

/** Real programs take their time to start on a busy machine. */
const PATIENCE_MS = 120_000

export type RealTeam = Awaited<ReturnType<typeof openTeam>>

export async function openTeam({ cast, play, runtime = 'tmux', config = {} }: TeamOptions) {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'orchub-team-')))
  const model: ModelServer = await startModelServer({ play })
  const agents: ConfigInput['agents'] = {}
  for (const [name, installed] of Object.entries(cast)) {
    const home = await prepareHome(installed, {
      folder: join(folder, 'homes', name),
      cwd: join(folder, 'work', name),
      modelUrl: model.url,
      key: `sk-ant-fake-${name}`,
    })
    agents[name] = { program: PROGRAM[installed], runtime, folder: join('work', name), with: home.settings }
  }
  const input: ConfigInput = {
    agents,
    limits: { rate: 'off', ping_pong: 'off', hops: 'off' },
    permissions: { urgent: 'allow' },
    service: { port: 0 },
    ...config,
  }
  const entries: AuditEntry[] = []
  let orchub: Orchub = await start()

  async function start() {
    const started = await startOrchub({
      config: defineConfig(input, { file: join(folder, 'orc.yaml'), env: {} }),
    })
    started.switchboard.store.onCommit((committed) => void entries.push(...committed))
    return started
  }

  async function until<T>(what: string, look: () => Promise<T | undefined | false> | T | undefined | false) {
    const deadline = Date.now() + PATIENCE_MS
    for (;;) {
      const seen = await look()
      if (seen !== undefined && seen !== false) return seen as T
      if (Date.now() > deadline) throw new Error(`never came to be: ${what}\n${await explain()}`)
      await sleep(50)
    }
  }

  async function explain(): Promise<string> {
    const screens = await Promise.all(
      Object.keys(cast).map(async (name) => {
        const session = orchub.switchboard.sessions.session(name)
        const screen = await session?.screen?.(30).catch((error: Error) => error.message)
        return `--- ${name} is ${session?.state}\n${screen ?? ''}`
      }),
    )
    const log = entries.slice(-40).map((entry) => `${entry.type} ${entry.actor}: ${entry.text}`)
    return [...log, ...screens].join('\n')
  }

  return {
    folder,
    model,
    entries,
    until,
    explain,
    get orchub() {
      return orchub
    },
    state: (name: string) => orchub.switchboard.sessions.session(name)?.state,
    idle: (name: string) =>
      until(`${name} is idle`, () => orchub.switchboard.sessions.session(name)?.state === 'idle'),
    /** As the operator, in whose name nothing needs a rule. */
    async order(type: string, fields: Record<string, unknown>) {
      return await orchub.switchboard.handle({ kind: 'operator' }, { type, fields })
    },
    async mailOf(name: string): Promise<Mail[]> {
      const receipt = await orchub.switchboard.handle(
        { kind: 'operator' },
        { type: 'query_mailbox', fields: { agent: name, filter: 'all' } },
      )
      if (receipt.status !== 'ok') throw new Error(JSON.stringify(receipt))
      return receipt.details!.messages as Mail[]
    },
    /** The service ends as by `orc serve`; the agents go on; it starts again. */
    async restart(agents: 'leave' | 'end' = 'leave') {
      await orchub.close(agents)
      orchub = await start()
    },
    async close() {
      await orchub.close('end')
      await model.close()
      for (const name of Object.keys(cast)) await endProcessesOf(join(folder, 'homes', name))
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}
