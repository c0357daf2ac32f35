/** The agents that fill the roles of the team, and the people who decide on its proposals. */
import type { Person } from '../base/person.ts'
import type { Team } from '../commands/team.ts'
import { CONFIDENTIAL_ROLES, type RouteStep } from './team-settings.ts'

/** The agent that orc.yaml assigns to the role, or the agent with the name of the role. */
export function agentFor(team: Team, role: string): string | undefined {
  return team.resolve(team.config.github?.team[role] ?? role)
}

/** Whether people decide on every proposal of this role: "requires_hitl" or one of the steps names it or its agent. */
export function requiresApproval(team: Team, role: string, steps: readonly RouteStep[]): boolean {
  const agent = agentFor(team, role)
  const isMeant = (name: string) =>
    name.toLowerCase() === role.toLowerCase() || (agent !== undefined && team.resolve(name) === agent)
  const listed = team.config.github?.requiresHitl ?? []
  return [...listed, ...steps.filter((step) => step.requiresHitl).map(({ to }) => to)].some(isMeant)
}

export function personWithLogin(team: Team, login: string): Person | undefined {
  return team.config.people.find(({ github }) => github?.toLowerCase() === login.toLowerCase())
}

/** People who may decide on proposals. */
export function approversOf({ config }: Team): Person[] {
  const approvers = config.github?.approvers
  return config.people.filter(({ name, role }) => role === 'operator' && (approvers?.includes(name) ?? true))
}

/** Only people who may decide are mentioned in a request for approval. */
export function approverLogins(team: Team): string[] {
  return approversOf(team).flatMap(({ github }) => (github === undefined ? [] : [github]))
}

/** Only moderators read what the agents of such a role say. */
export function isConfidentialRole(role: string): boolean {
  return CONFIDENTIAL_ROLES.includes(role)
}
