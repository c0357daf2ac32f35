import { hash } from 'node:crypto'
import { resolve } from 'node:path'
import { PROGRAMS, type ProgramName } from '../base/agent.ts'
import { parseDuration } from '../base/durations.ts'
import type { Person } from '../base/person.ts'
import type { ModelSettings } from '../llm/llm.ts'
import type { AgentPolicy, Approval, Permissions, Policy, Rule, RuleSet } from '../rules/rule.ts'
import type { Locate, Path, Report } from '../yaml/problem.ts'
import { confidentialAgents, type GithubConfig, resolveGithub } from './github.ts'
import { type Limits, type Prices, resolveLimits, resolvePrices } from './limits.ts'
import { isLoopback } from './loopback.ts'
import { checkModelsOfAgents, resolveModels } from './models.ts'
import { type ConfigInput, DEFAULTS, type RuntimeName } from './schema.ts'
import { type Env, folderOf, stateFolder } from './state-folder.ts'
import { resolveStore, type StoreConfig } from './store-url.ts'
import { type RunsConfig, resolveRuns, resolveTasks, type TasksConfig } from './tasks.ts'
import {
  checkParents,
  type Roster,
  readRoster,
  resolveApproval,
  resolveApprovals,
  resolvePeople,
} from './team.ts'
import { resolveWebhooks, type WebhookConfig } from './webhooks.ts'

export interface AgentConfig extends AgentPolicy {
  readonly role?: string
  readonly runtime: RuntimeName
  /** Set where the runtime runs a program. */
  readonly program?: ProgramName
  /** The agent's working folder, absolute. */
  readonly folder: string
  readonly deliver: 'together' | 'single'
  /** Settings that the program or runtime checks itself. */
  readonly with: Readonly<Record<string, unknown>>
  readonly autostart: boolean
  /** A delegation starts the agent, even after it was stopped. */
  readonly onDemand: boolean
  /** Idle time after which the agent is stopped; absent: never. */
  readonly stopWhenIdleMs?: number
  readonly capabilities: readonly string[]
}

/** orc.yaml with all defaults, canonical names, durations in milliseconds and absolute paths. Frozen. */
export interface Config extends Policy {
  /** Absolute; absent when the configuration did not come from a file. */
  readonly file?: string
  readonly stateFolder: string
  readonly agents: readonly AgentConfig[]
  readonly people: readonly Person[]
  readonly approvals: Readonly<Record<string, Approval>>
  readonly limits: Limits
  readonly prices: Prices
  /** By the name that orc.yaml gives them. */
  readonly models: Readonly<Record<string, ModelSettings>>
  readonly tasks: TasksConfig
  readonly runs: RunsConfig
  readonly webhooks: readonly WebhookConfig[]
  /** Names, as written, of the agents whose output only moderators may read. */
  readonly confidential: readonly string[]
  /** Undefined: GitHub webhooks are refused. */
  readonly github?: GithubConfig
  /** How the terminal of `orc up` signals that a person is asked. */
  readonly notify: 'off' | 'bell' | 'desktop'
  readonly tmux: TmuxConfig
  readonly service: ServiceConfig
  readonly store: StoreConfig
}

interface TmuxConfig {
  readonly socket: string
  readonly panesPerWindow: number
}

interface Origin {
  readonly file: string | undefined
  readonly env: Env
  readonly locate: Locate
  readonly report: Report
  readonly warn: Report
}

/** Resolves relations between keys. The result is valid only if no problem was reported. */
export function resolveConfig(input: ConfigInput, origin: Origin): Config {
  const { file, env, locate, report, warn } = origin
  const roster = readRoster(input.agents, report)
  const paths = { folder: folderOf(file), stateFolder: stateFolder(file, env), env }
  const models = resolveModels(input.models ?? {}, report, warn)
  checkModelsOfAgents(input.agents, models, report)
  const people = resolvePeople(input, report)
  return {
    ...(file !== undefined && { file: resolve(file) }),
    stateFolder: paths.stateFolder,
    agents: resolveAgents(input, roster, paths.folder, origin),
    rules: resolveRules(input, roster, origin),
    permissions: permissionsOf(input.permissions),
    people,
    approvals: resolveApprovals(input, people, report),
    limits: resolveLimits(input.limits ?? {}),
    prices: resolvePrices(input, warn),
    models,
    tasks: resolveTasks(input.tasks ?? {}, models, roster.names, report),
    runs: resolveRuns(input.runs ?? {}, models, report),
    webhooks: resolveWebhooks(input.webhooks ?? {}, report, warn),
    ...githubOf(input, people, report, warn),
    notify: input.notify === false ? 'off' : (input.notify ?? 'desktop'),
    tmux: resolveTmux(input.tmux ?? {}, paths.stateFolder),
    service: resolveService(input.service ?? {}, paths.folder, report, warn),
    store: resolveStore(input.store?.url, paths, report, warn),
    lines: decidingLines(input, locate),
  }
}

function githubOf(
  input: ConfigInput,
  people: readonly Person[],
  report: Report,
  warn: Report,
): Pick<Config, 'github' | 'confidential'> {
  const { approvers } = resolveApproval({ approvers: input.github?.approvers }, ['github'], people, report)
  const github = resolveGithub(input.github, Object.keys(input.agents), approvers, report, warn)
  const confidential = confidentialAgents(github)
  return github === undefined ? { confidential } : { confidential, github }
}

function resolveAgents(
  input: ConfigInput,
  roster: Roster,
  folder: string,
  { report, warn }: Origin,
): AgentConfig[] {
  const parents = new Map<string, string>()
  const agents = Object.entries(input.agents).map(([name, written]): AgentConfig => {
    const agent = written ?? {}
    const path = ['agents', name]
    const parent = agent.parent === undefined ? undefined : roster.one(agent.parent, [...path, 'parent'])
    if (parent !== undefined) parents.set(name, parent)
    const runtime = agent.runtime ?? (agent.program === undefined ? 'none' : 'tmux')
    checkProgram(agent.program, runtime, path, report)
    if (RUNS_PROGRAMS.has(runtime) && input.service?.unix_socket !== undefined) {
      report(
        path,
        'Agent programs need a port, but the service listens on a Unix socket',
        'Remove service.unix_socket.',
        'key',
      )
    }
    if (agent.with && runtime === 'none') {
      warn(
        [...path, 'with'],
        'is not used: this agent has no runtime',
        'Add "runtime:", or remove it.',
        'key',
      )
    }
    if (agent.stop_when_idle !== undefined && agent.on_demand !== true) {
      warn(
        [...path, 'stop_when_idle'],
        'stops the agent, but nothing starts it again',
        'Add "on_demand: true", so that a task starts it.',
        'key',
      )
    }
    return {
      name,
      ...(parent !== undefined && { parent }),
      ...(agent.role !== undefined && { role: agent.role }),
      ...(agent.send !== undefined && { send: roster.who(agent.send, [...path, 'send']) }),
      ...(agent.receive !== undefined && { receive: roster.who(agent.receive, [...path, 'receive']) }),
      permissions: permissionsOf(agent.permissions),
      runtime,
      ...(agent.program !== undefined && { program: agent.program }),
      folder: agent.folder === undefined ? folder : resolve(folder, agent.folder),
      deliver: agent.deliver ?? 'together',
      with: agent.with ?? {},
      autostart: agent.autostart ?? agent.on_demand !== true,
      onDemand: agent.on_demand ?? false,
      ...(agent.stop_when_idle !== undefined && { stopWhenIdleMs: parseDuration(agent.stop_when_idle) }),
      capabilities: agent.capabilities ?? [],
    }
  })
  checkParents(parents, report)
  return agents
}

const RUNS_PROGRAMS: ReadonlySet<RuntimeName> = new Set(['tmux', 'acp'])

function checkProgram(
  program: ProgramName | undefined,
  runtime: RuntimeName,
  path: readonly string[],
  report: Report,
) {
  if (program === undefined && RUNS_PROGRAMS.has(runtime)) {
    report(
      [...path, 'runtime'],
      `The runtime "${runtime}" needs a program to run`,
      `Add "program: ${PROGRAMS.join(' | ')}".`,
    )
  } else if (program !== undefined && !RUNS_PROGRAMS.has(runtime)) {
    report(
      [...path, 'program'],
      `The runtime "${runtime}" cannot run a program`,
      'Use "runtime: tmux" or "runtime: acp", or remove the program.',
    )
  }
}

/** Each state folder has its own tmux server, so that two teams never share one. */
function resolveTmux(written: NonNullable<ConfigInput['tmux']>, state: string): TmuxConfig {
  return {
    socket: written.socket ?? `orc-${hash('sha256', state).slice(0, 10)}`,
    panesPerWindow: written.panes_per_window ?? 4,
  }
}

function resolveRules(input: ConfigInput, roster: Roster, origin: Origin): RuleSet {
  const { report, warn } = origin
  const written = input.rules ?? {}
  const preset = written.preset ?? 'mesh'
  const hub = written.hub === undefined ? undefined : roster.one(written.hub, ['rules', 'hub'])
  if (preset === 'hub' && written.hub === undefined) {
    report(['rules', 'preset'], 'The preset "hub" needs an agent as the hub', 'Add "hub: NAME" below it.')
  } else if (preset !== 'hub' && written.hub !== undefined) {
    warn(
      ['rules', 'hub'],
      `is not used with the preset "${preset}"`,
      'Use "preset: hub", or remove it.',
      'key',
    )
  }
  if (preset === 'tree' && !Object.values(input.agents).some((agent) => agent?.parent !== undefined)) {
    warn(
      ['rules', 'preset'],
      'The preset "tree" blocks all messages: no agent has a parent',
      'Give agents a "parent:".',
    )
  }
  return {
    preset,
    ...(hub !== undefined && { hub }),
    allow: resolveList('allow', written.allow, roster, warn),
    forbid: resolveList('forbid', written.forbid, roster, warn),
    ask: resolveList('ask', written.ask, roster, warn),
  }
}

type WrittenList = NonNullable<ConfigInput['rules']>['allow']

function resolveList(list: string, written: WrittenList, roster: Roster, warn: Report): Rule[] {
  return (written ?? []).map(({ from, to, reason }, index) => {
    const path = ['rules', list, index]
    const rule = { from: roster.who(from, [...path, 'from']), to: roster.who(to, [...path, 'to']) }
    const [only] = rule.from
    if (only !== '*' && [...rule.from, ...rule.to].every((name) => name === only)) {
      warn(path, 'has no effect: agents never write to themselves', 'Remove it.')
    }
    return { ...rule, ...(reason !== undefined && { reason }) }
  })
}

function permissionsOf(written: ConfigInput['permissions']): Permissions {
  const entries = Object.entries(written ?? {}).map(([action, permission]) => [
    action,
    typeof permission === 'object' ? permission.verdict : permission,
  ])
  return Object.fromEntries(entries) as Permissions
}

/** Maps rules and permissions to their lines in orc.yaml, so that explanations can name the line. */
function decidingLines(input: ConfigInput, locate: Locate): Record<string, number> {
  const lines: Record<string, number> = {}
  function note(path: Path, key: string): void {
    const { line } = locate(path, 'key')
    if (line > 0) lines[key] = line
  }
  for (const list of ['allow', 'forbid', 'ask'] as const) {
    for (const index of (input.rules?.[list] ?? []).keys())
      note(['rules', list, index], `rules.${list}[${index}]`)
  }
  if (input.rules?.preset !== undefined) note(['rules', 'preset'], 'rules.preset')
  for (const action of Object.keys(input.permissions ?? {}))
    note(['permissions', action], `permissions.${action}`)
  for (const [name, agent] of Object.entries(input.agents)) {
    if (agent?.send !== undefined) note(['agents', name, 'send'], `agents.${name}.send`)
    if (agent?.receive !== undefined) note(['agents', name, 'receive'], `agents.${name}.receive`)
    for (const action of Object.keys(agent?.permissions ?? {})) {
      note(['agents', name, 'permissions', action], `agents.${name}.permissions.${action}`)
    }
  }
  return lines
}

export interface ServiceConfig {
  readonly host: string
  readonly port: number
  /** Absolute path, used instead of host and port. */
  readonly unixSocket?: string
  readonly allowedHosts: readonly string[]
}

/** The kernel's limit for the path of a Unix socket. */
const SOCKET_PATH_BYTES = 107

type ServiceInput = NonNullable<ConfigInput['service']>

function resolveService(written: ServiceInput, folder: string, report: Report, warn: Report): ServiceConfig {
  const { host = DEFAULTS.host, port = DEFAULTS.port, unix_socket, allowed_hosts } = written
  if (!isLoopback(host)) {
    const hint = 'Traffic is not encrypted: keep it in a trusted network or behind a proxy with TLS.'
    warn(['service', 'host'], 'makes the service reachable from other machines', hint)
  }
  const common = { host, port, allowedHosts: allowed_hosts ?? [] }
  if (unix_socket === undefined) return common
  const path = ['service', 'unix_socket']
  const unixSocket = resolve(folder, unix_socket)
  if (written.host !== undefined || written.port !== undefined) {
    report(path, 'cannot be combined with "host" or "port"', 'Keep either the socket or the port.', 'key')
  }
  if (Buffer.byteLength(unixSocket) > SOCKET_PATH_BYTES) {
    report(
      path,
      `is longer than ${SOCKET_PATH_BYTES} bytes, the limit for a socket path`,
      'Choose a shorter absolute path.',
    )
  }
  return { ...common, unixSocket }
}
