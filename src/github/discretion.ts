import type { Team } from '../commands/team.ts'
import { isDiscreet } from './core/roles.ts'
import { TEAM_ROLES } from './terms.ts'

/** Whether what an agent says may be about people's conduct, and so is for moderators (S3.15). */
export function isForModerators(team: Team, agent: string): boolean {
  const { github } = team.config
  if (github === undefined) return false
  return TEAM_ROLES.some((role) => isDiscreet(role) && team.resolve(github.team[role] ?? role) === agent)
}
