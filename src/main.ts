import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { agentEnvironment } from './agents/environment.ts'
import { type Service, type ServiceOptions, startService } from './api/service.ts'
import { announceService, lastPort, rememberPort } from './api/service-file.ts'
import { genesisHash, sealWith } from './audit/chain.ts'
import { openRedactor, type Redactor } from './audit/redact.ts'
import type { ChainMark } from './audit/verify.ts'
import { type AuditVerification, openWitness, readWitness, verifyAudit } from './audit/verify-store.ts'
import type { Clock } from './base/clock.ts'
import { AppError } from './base/errors.ts'
import type { Log } from './base/log.ts'
import { VERSION } from './base/version.ts'
import type { CommandEntry } from './commands/commands.ts'
import { openTokens, readOrCreateOperatorToken, type Tokens } from './commands/tokens.ts'
import {
  type Config,
  type GithubConfig,
  type LoadedConfig,
  makeStateFolder,
  readConfig,
} from './config/config.ts'
import { type ConfigStatus, watchConfig } from './config/watch.ts'
import { type Engine, openEngine } from './engine.ts'
import { createOctokit } from './github/octokit/octokit.ts'
import type { GitHub } from './github/port.ts'
import type { ToolDefinition } from './llm/llm.ts'
import { createModels } from './llm/sdk/models.ts'
import { checkMessages, openMessageCursor } from './messages/store.ts'
import { findChangedRequest } from './people/people.ts'
import { createAnyProgram } from './programs/any/program.ts'
import { createClaudeCode } from './programs/claude-code/program.ts'
import { createCodex } from './programs/codex/program.ts'
import { createGemini } from './programs/gemini/program.ts'
import { createOpencode } from './programs/opencode/program.ts'
import type { AgentProgram } from './programs/program.ts'
import { fieldsSchema } from './protocol/field-schema.ts'
import { shellShapes } from './protocol/registry.ts'
import { createAcpRuntime } from './runtimes/acp/runtime.ts'
import { createLlmRuntime, type LlmOptions } from './runtimes/llm/runtime.ts'
import type { AgentSettings, Runtime } from './runtimes/runtime.ts'
import { createScriptedRuntime } from './runtimes/scripted/runtime.ts'
import { createTmuxRuntime } from './runtimes/tmux/runtime.ts'
import type { StoreOptions } from './store/open-store.ts'
import { openSqliteStore, readSqliteStore, type Snapshot } from './store/sqlite/open.ts'
import type { Store } from './store/store.ts'

/** Options of the composition root, the only file that names concrete adapters. */
export interface OrchubOptions {
  config: Config
  /** Overrides the configuration, like `port`. */
  host?: string
  port?: number
  log?: Log
  clock?: Clock
  /** Reload the configuration when its file changes. */
  watch?: boolean
  /** Start the agents with the service, unless orc.yaml says otherwise. With false, they start when needed. */
  autostart?: boolean
  /** The service was started for runs and stops after the last one; the command line reads this in the service file. */
  forRuns?: boolean
  /** Commands of the embedding application. */
  commands?: readonly CommandEntry[]
  /** Aborts the start: it then doesn't wait for agents that are still starting. */
  gone?: AbortSignal
}

export interface Orchub {
  readonly url: string
  readonly engine: Engine
  readonly operatorToken: string
  readonly configStatus: () => ConfigStatus
  /** Resolves when an API call asks the service to stop, with what should happen to the agents. */
  readonly stopAsked: Promise<'end' | 'leave'>
  /** `end` (the default) stops the agents too; `leave` keeps those that run in terminals. */
  close(agents?: 'end' | 'leave'): Promise<void>
}

export async function startOrchub(options: OrchubOptions): Promise<Orchub> {
  const { config } = options
  if (config === undefined) {
    throw new AppError('CONFIG_INVALID', 'startOrchub needs a configuration', {
      hint: 'Create one with defineConfig({ agents: … }), or read orc.yaml with readTeam(file).',
    })
  }
  const log = options.log ?? SILENT
  const clock = options.clock ?? SYSTEM_CLOCK
  const startedAt = clock.now()
  const listen = listenOn(options)
  const redactor = await openRedactor()
  const store = await openStore(config, clock, redactor, describeListen(listen))
  const ending: Ending[] = []
  try {
    const witness = openWitness(witnessFile(config), store)
    ending.push(() => witness.close())
    const models = createModels({ settings: () => engine.team().config.models, clock, log })
    let opened: Engine | undefined
    const environment = agentEnvironment(() => opened?.team().config ?? config)
    const engine: Engine = await openEngine({
      config,
      store,
      clock,
      log,
      redact: redactor.redact,
      models,
      environment,
      runtimes: runtimesOn({
        clock,
        log,
        tmux: config.tmux,
        environment,
        llm: { models, commands: () => toolsOf(engine) },
      }),
      ...(options.commands === undefined ? {} : { commands: options.commands }),
      ...(options.autostart === undefined ? {} : { autostart: options.autostart }),
      ...(config.github === undefined ? {} : { github: githubOf(config.github, clock) }),
    })
    opened = engine
    ending.unshift((agents) => engine.close(agents))
    const { promise: stopAsked, resolve: askToStop } = Promise.withResolvers<'end' | 'leave'>()
    const operatorToken = await readOrCreateOperatorToken(config.stateFolder, engine.tokens)
    const watch = watchConfig({
      config,
      now: clock.now,
      apply: engine.reload,
      audit: (draft) => store.write((tx) => tx.audit(draft)),
      log,
      enabled: options.watch === true,
      load: readTeam,
    })
    ending.unshift(() => watch.close())
    const service: Service = await startAtLastPort(config.stateFolder, listen, {
      engine,
      allowedHosts: config.service.allowedHosts,
      version: VERSION,
      startedAt,
      configStatus: watch.status,
      storePlace: config.store.shown,
      verifyAudit: () => verifyStoredAudit(store, witness.read()),
      onStop: askToStop,
      pages: PAGES,
    })
    ending.unshift(() => service.close())
    const announced = announceService(config.stateFolder, {
      url: service.url,
      commands: shellShapes(engine.registry.all()),
      ...(options.forRuns === true ? { for_runs: true } : {}),
    })
    ending.unshift(() => announced.close())
    const begun = engine.begin(service.url)
    // A stop request doesn't wait for agents that take long to start; `close` cancels their start.
    await Promise.race([begun, stopAsked, aborted(options.gone)])
    begun.catch((error: unknown) => log.error({ err: error }, 'could not start the team'))
    await store.write((tx) =>
      tx.audit({
        type: 'service.started',
        class: 'public',
        actor: 'orchestrator',
        text: `Orchub ${VERSION} listens at ${service.url}`,
        data: { version: VERSION, pid: process.pid },
      }),
    )
    return {
      url: service.url,
      engine,
      operatorToken,
      configStatus: watch.status,
      stopAsked,
      close: closeOnce(ending),
    }
  } catch (error) {
    await closeOnce(ending)()
    await store.close().catch(() => {})
    throw error
  }
}

/** With port 0, tries the port of the last start first. */
async function startAtLastPort(
  stateFolder: string,
  listen: ServiceOptions['listen'],
  options: Omit<ServiceOptions, 'listen'>,
): Promise<Service> {
  const last = 'port' in listen && listen.port === 0 ? lastPort(stateFolder) : undefined
  const service =
    (last === undefined || !('port' in listen)
      ? undefined
      : await startService({ ...options, listen: { ...listen, port: last } }).catch(ifTaken)) ??
    (await startService({ ...options, listen }))
  if (service.port !== undefined) rememberPort(stateFolder, service.port)
  return service
}

function ifTaken(error: unknown): undefined {
  const cause = error instanceof AppError ? (error.cause as NodeJS.ErrnoException | undefined) : undefined
  if (cause?.code !== 'EADDRINUSE') throw error
}

/** Reads orc.yaml as the service does: runtimes and programs check the settings of their agents too. */
export function readTeam(file: string): LoadedConfig {
  const loaded = readConfig(file)
  if (!loaded.ok) return loaded
  const runtimes = runtimesOn({ clock: SYSTEM_CLOCK, log: SILENT })
  const problems = loaded.value.config.agents.flatMap((agent) => {
    const runtime = runtimes.find(({ name }) => name === agent.runtime)
    const found = runtime?.check({ program: agent.program, settings: agent.with }) ?? []
    return found.map(({ path, message, hint }) =>
      loaded.value.problemAt(['agents', agent.name, 'with', ...path], message, hint),
    )
  })
  return problems.length === 0 ? loaded : { ok: false, error: problems }
}

/** Checks the settings of a program in plan.yaml (`with`). */
export function checkProgram(runtime: 'tmux' | 'acp', agent: AgentSettings): ReturnType<Runtime['check']> {
  const runtimes = runtimesOn({ clock: SYSTEM_CLOCK, log: SILENT })
  return runtimes.find(({ name }) => name === runtime)?.check(agent) ?? []
}

/** The `orc` command for agents and their hooks: the script of a clone, or the installed program. */
export function ownCommand(): string {
  const root = join(import.meta.dirname, '..')
  const script = join(root, 'orc')
  return existsSync(script) ? script : join(root, 'bin', 'orc.js')
}

/** Creating runtimes starts nothing: without a tmux socket they can only check settings. */
function runtimesOn({
  clock,
  log,
  tmux = { socket: 'none', panesPerWindow: 1 },
  environment = process.env,
  llm = { models: createModels({ settings: () => ({}), clock, log }), commands: () => [] },
}: {
  clock: Clock
  log: Log
  tmux?: Config['tmux']
  environment?: NodeJS.ProcessEnv
  llm?: Pick<LlmOptions, 'models' | 'commands'>
}): Runtime[] {
  const bin = ownCommand()
  const programs: AgentProgram[] = [
    createClaudeCode({ log }),
    createCodex({ log }),
    createGemini({ log }),
    createOpencode({ log }),
    createAnyProgram(),
  ]
  return [
    createScriptedRuntime({ after: clock.after }),
    createTmuxRuntime({ ...tmux, programs, clock, log, bin, environment }),
    createAcpRuntime({ clock, log, bin, environment, version: VERSION }),
    createLlmRuntime({ ...llm, clock, log }),
  ]
}

const GITHUB_TIMEOUT_MS = 15_000

/** The GitHub client of orc.yaml without the service, for `orc github setup`. */
export function openGithub(settings: GithubConfig): GitHub {
  return githubOf(settings, SYSTEM_CLOCK)
}

/** Reads secrets for each call and never stores them. */
function githubOf({ app, tokenEnv = '', apiUrl }: GithubConfig, clock: Clock): GitHub {
  return createOctokit({
    credentials:
      app === undefined
        ? { kind: 'token', token: () => process.env[tokenEnv] }
        : { kind: 'app', id: app.id, key: () => process.env[app.keyEnv] },
    apiUrl,
    timeoutMs: GITHUB_TIMEOUT_MS,
    userAgent: `orchub/${VERSION}`,
    now: clock.now,
  })
}

/** All commands as tools for models. */
function toolsOf({ registry }: Engine): ToolDefinition[] {
  return registry.all().map((definition) => ({
    name: definition.type,
    description: `${definition.summary}.`,
    schema: fieldsSchema(definition),
  }))
}

export interface OfflineStore {
  store: Store
  tokens: Tokens
  verifyAudit(): Promise<AuditVerification>
  close(): Promise<void>
}

/** The store without the service, for commands that work while it is stopped: tokens, verification, the doctor. */
export async function openOffline(config: Config): Promise<OfflineStore> {
  const redactor = await openRedactor()
  const store = await openStore(config, SYSTEM_CLOCK, redactor, 'not listening: an offline command')
  return {
    store,
    tokens: await openTokens(store, SYSTEM_CLOCK.now),
    verifyAudit: () => verifyStoredAudit(store, readWitness(witnessFile(config))),
    close: () => store.close(),
  }
}

const witnessFile = ({ stateFolder }: Config) => join(stateFolder, 'audit.witness')

/** Verifies the audit chain, and the messages and requests whose digests are in it. */
export function verifyStoredAudit(store: Store, witness?: ChainMark): Promise<AuditVerification> {
  return verifyAudit(store, { openMessages: openMessageCursor, findChangedRequest }, witness)
}

/**
 * Reads the store while the service is stopped. Not for a shared database: other daemons may be using it, so ask them
 * instead.
 */
export function readOffline({ store }: Config): Snapshot | 'locked' | 'unreadable' {
  return store.engine === 'sqlite' ? readSqliteStore(store.file) : 'unreadable'
}

/** Lease of a daemon. A SQLite file has a lock, so its lease only has to be long. */
const LEASE_MS = { postgres: 15_000, sqlite: 24 * 3600_000 }

async function openStore(config: Config, clock: Clock, redactor: Redactor, address: string): Promise<Store> {
  makeStateFolder(config.stateFolder)
  const options: StoreOptions = {
    identity: {
      daemon: 'main',
      address,
      pid: process.pid,
      host: hostname(),
      leaseMs: LEASE_MS[config.store.engine],
    },
    seal: sealWith(redactor),
    genesis: genesisHash,
    now: clock.now,
    checkRows: checkMessages,
  }
  if (config.store.engine === 'sqlite') return openSqliteStore(config.store.file, options)
  const { openPostgresStore } = await import('./store/postgres/open.ts')
  return openPostgresStore(config.store.url, options)
}

function listenOn({ config, host, port }: OrchubOptions) {
  const { service } = config
  if (service.unixSocket !== undefined && host === undefined && port === undefined) {
    return { unixSocket: service.unixSocket }
  }
  return { host: host ?? service.host, port: port ?? service.port }
}

function describeListen(listen: ReturnType<typeof listenOn>): string {
  if ('unixSocket' in listen) return listen.unixSocket
  // The free port isn't known yet.
  return listen.port === 0 ? '' : `http://${listen.host}:${listen.port}`
}

function aborted(signal: AbortSignal | undefined): Promise<unknown> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }))
}

type Ending = (agents: 'end' | 'leave') => Promise<void> | void

function closeOnce(ending: readonly Ending[]): (agents?: 'end' | 'leave') => Promise<void> {
  let closed: Promise<void> | undefined
  const closeAll = async (agents: 'end' | 'leave') => {
    for (const end of ending) await end(agents)
  }
  return (agents = 'end') => {
    closed ??= closeAll(agents)
    return closed
  }
}

/** The built control room: next to the program in the package, in web/dist in a clone. */
const PAGES = join(import.meta.dirname, import.meta.url.endsWith('.ts') ? '../web/dist' : 'web')

export const SYSTEM_CLOCK: Clock = {
  now: Date.now,
  after(ms, callback) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} }
