import { EVERYONE } from '../../base/agent.ts'
import type { Team } from '../../commands/team.ts'
import type { AgentConfig } from '../../config/config.ts'
import { decideEdge } from '../commands/delegate.ts'

/** Agents that another can have work for it. `through`: to whom it must delegate for that. */
export type Circle = readonly Member[]

export interface Member {
  agent: AgentConfig
  through?: string
}

/** Whom an agent can have work for it: those it may delegate to, and all below them. */
export function circleOf(team: Team, name: string): Circle {
  const childrenOf = Map.groupBy(team.config.agents, ({ parent }) => parent)
  const circle: Member[] = [...new Set([...(childrenOf.get(name) ?? []), ...allowedBeyond(team, name)])]
    .filter((agent) => agent.name !== name && decideEdge(team, name, agent.name).verdict !== 'deny')
    .map((agent) => ({ agent }))
  const seen = new Set([name, ...circle.map(({ agent }) => agent.name)])
  // It grows while it is gone through: the children of children follow.
  for (const { agent, through = agent.name } of circle) {
    for (const child of childrenOf.get(agent.name) ?? []) {
      if (seen.has(child.name)) continue
      seen.add(child.name)
      circle.push({ agent: child, through })
    }
  }
  return circle
}

/** Whom rules.allow names besides the children. */
function allowedBeyond({ config }: Team, name: string): AgentConfig[] {
  const rules = config.rules.allow.filter(({ from }) => from.includes(name) || from.includes(EVERYONE))
  const named = new Set(rules.flatMap(({ to }) => to))
  if (named.has(EVERYONE)) return [...config.agents]
  return named.size === 0 ? [] : config.agents.filter((agent) => named.has(agent.name))
}
