import { EVERYONE } from '../../base/agent.ts'
import type { Team } from '../../commands/team.ts'
import type { AgentConfig } from '../../config/config.ts'
import { decideEdge } from '../commands/delegate.ts'

export interface ReachableAgent {
  agent: AgentConfig
  /** The agent to delegate to, if this one isn't a direct child. */
  through?: string
}

/** The agents that can work for an agent: those it may delegate to, and all below them. */
export function reachableAgents(team: Team, name: string): readonly ReachableAgent[] {
  const childrenOf = Map.groupBy(team.config.agents, ({ parent }) => parent)
  const reachable: ReachableAgent[] = [
    ...new Set([...(childrenOf.get(name) ?? []), ...allowedBeyond(team, name)]),
  ]
    .filter((agent) => agent.name !== name && decideEdge(team, name, agent.name).verdict !== 'deny')
    .map((agent) => ({ agent }))
  const seen = new Set([name, ...reachable.map(({ agent }) => agent.name)])
  // The list grows during the loop, so children of children follow.
  for (const { agent, through = agent.name } of reachable) {
    for (const child of childrenOf.get(agent.name) ?? []) {
      if (seen.has(child.name)) continue
      seen.add(child.name)
      reachable.push({ agent: child, through })
    }
  }
  return reachable
}

/** Agents that rules.allow names for this one. */
function allowedBeyond({ config }: Team, name: string): AgentConfig[] {
  const rules = config.rules.allow.filter(({ from }) => from.includes(name) || from.includes(EVERYONE))
  const named = new Set(rules.flatMap(({ to }) => to))
  if (named.has(EVERYONE)) return [...config.agents]
  return named.size === 0 ? [] : config.agents.filter((agent) => named.has(agent.name))
}
