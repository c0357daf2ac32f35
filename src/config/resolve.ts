import { resolve } from 'node:path'
import type { AgentPolicy, Permissions, Policy, Rule, RuleSet } from '../model/rule.ts'
import { type Limits, resolveLimits } from './limits.ts'
import { decidingLines } from './lines.ts'
import { resolveService, type ServiceConfig } from './listener.ts'
import type { Locate, Report } from './problem.ts'
import type { ConfigInput, RuntimeName } from './schema.ts'
import { type Env, folderOf, stateFolder } from './state-folder.ts'
import { resolveStore, type StoreConfig } from './store-url.ts'
import { checkParents, type Roster, readRoster } from './team.ts'

export interface AgentConfig extends AgentPolicy {
  readonly role?: string
  readonly runtime: RuntimeName
  /** The runtime's own settings; the runtime checks them. */
  readonly with: Readonly<Record<string, unknown>>
  readonly autostart: boolean
}

/** orc.yaml with every default filled in, names canonical, durations in milliseconds, paths absolute. Frozen. */
export interface Config extends Policy {
  /** Absolute; absent when the configuration did not come from a file. */
  readonly file?: string
  readonly stateFolder: string
  readonly agents: readonly AgentConfig[]
  readonly limits: Limits
  readonly service: ServiceConfig
  readonly store: StoreConfig
}

export interface Origin {
  readonly file: string | undefined
  readonly env: Env
  readonly locate: Locate
  readonly report: Report
  readonly warn: Report
}

/** What keys mean together. Problems are reported; the result counts only if there were none. */
export function resolveConfig(input: ConfigInput, origin: Origin): Config {
  const { file, env, locate, report, warn } = origin
  const roster = readRoster(input.agents, report)
  const places = { folder: folderOf(file), stateFolder: stateFolder(file, env), env }
  return {
    ...(file !== undefined && { file: resolve(file) }),
    stateFolder: places.stateFolder,
    agents: resolveAgents(input, roster, origin),
    rules: resolveRules(input, roster, origin),
    permissions: permissionsOf(input.permissions),
    limits: resolveLimits(input.limits ?? {}),
    service: resolveService(input.service ?? {}, places.folder, report, warn),
    store: resolveStore(input.store?.url, places, report, warn),
    lines: decidingLines(input, locate),
  }
}

function resolveAgents(input: ConfigInput, roster: Roster, { report, warn }: Origin): AgentConfig[] {
  const parents = new Map<string, string>()
  const agents = Object.entries(input.agents).map(([name, written]): AgentConfig => {
    const agent = written ?? {}
    const path = ['agents', name]
    const parent = agent.parent === undefined ? undefined : roster.one(agent.parent, [...path, 'parent'])
    if (parent !== undefined) parents.set(name, parent)
    const runtime = agent.runtime ?? 'none'
    if (agent.with && runtime === 'none') {
      warn(
        [...path, 'with'],
        'is not used: no runtime runs this agent',
        'Say which with "runtime:", or remove it.',
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
      with: agent.with ?? {},
      autostart: agent.autostart ?? true,
    }
  })
  checkParents(parents, report)
  return agents
}

function resolveRules(input: ConfigInput, roster: Roster, origin: Origin): RuleSet {
  const { report, warn } = origin
  const written = input.rules ?? {}
  const preset = written.preset ?? 'mesh'
  const hub = written.hub === undefined ? undefined : roster.one(written.hub, ['rules', 'hub'])
  if (preset === 'hub' && written.hub === undefined) {
    report(
      ['rules', 'preset'],
      'The preset "hub" needs to know which agent is the hub',
      'Add "hub: NAME" below it.',
    )
  } else if (preset !== 'hub' && written.hub !== undefined) {
    warn(
      ['rules', 'hub'],
      `is not used with the preset "${preset}"`,
      'Say "preset: hub", or remove it.',
      'key',
    )
  }
  if (preset === 'tree' && !Object.values(input.agents).some((agent) => agent?.parent !== undefined)) {
    warn(
      ['rules', 'preset'],
      'The preset "tree" lets nobody write: no agent has a parent',
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
  return { ...written } as Permissions
}
