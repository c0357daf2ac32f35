import type { Sessions } from '../../agents/sessions.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { Person } from '../../base/person.ts'
import type { Team } from '../../commands/team.ts'
import type { GithubConfig } from '../../config/config.ts'
import type { Verdicts } from '../../people/verdicts.ts'
import type { Store } from '../../store/store.ts'
import type { Timers } from '../../store/timers.ts'
import type { Tasks } from '../../tasks/tasks.ts'
import type { GitHub } from '../port.ts'
import type { RouteStep } from '../terms.ts'

/** What the parts of the GitHub team share. */
export interface GithubParts {
  readonly store: Store
  readonly timers: Timers
  readonly tasks: Tasks
  readonly sessions: Sessions
  readonly clock: Clock
  readonly log: Log
  redact(text: string): string
  team(): Team
  readonly github: GitHub
  readonly verdicts: Pick<Verdicts, 'decide'>
  /** As orc.yaml has it now. */
  settings(): GithubConfig
  /** The login that everything is written under; undefined while GitHub does not say. */
  ownLogin(): Promise<string | undefined>
}

/** Who fills a role: whom orc.yaml says, else the agent of that name. */
export function agentFor(team: Team, settings: GithubConfig, role: string): string | undefined {
  return team.resolve(settings.team[role] ?? role)
}

/** People decide on everything of this role: orc.yaml names it, or the agent that fills it, in "requires_hitl" or in one of these steps. */
export function isForPeople(
  team: Team,
  settings: GithubConfig,
  role: string,
  steps: readonly RouteStep[],
): boolean {
  const agent = agentFor(team, settings, role)
  const isMeant = (name: string) =>
    name.toLowerCase() === role.toLowerCase() || (agent !== undefined && team.resolve(name) === agent)
  return (
    settings.requiresHitl.some(isMeant) ||
    steps.some(({ to, requiresHitl }) => requiresHitl === true && isMeant(to))
  )
}

/** Whose word a login on GitHub is. */
export function personOf(team: Team, login: string): Person | undefined {
  return team.config.people.find(({ github }) => github?.toLowerCase() === login.toLowerCase())
}

/** Who may decide on proposals. */
export function approversOf({ config }: Team, { approvers }: GithubConfig): Person[] {
  return config.people.filter(({ name, role }) => role === 'operator' && (approvers?.includes(name) ?? true))
}

/** Under which logins: nobody is called to a decision that they may not make. */
export function approverLogins(team: Team, settings: GithubConfig): string[] {
  return approversOf(team, settings).flatMap(({ github }) => (github === undefined ? [] : [github]))
}

/** `[orchestrator→triage] TASK: …` (S3.22). */
export const AUDIT = {
  task: 'github.task',
  success: 'github.success',
  failure: 'github.failure',
  logged: 'github.logged',
  asked: 'github.asked',
  health: 'github.health',
  replayed: 'github.replayed',
} as const

/** What the service says to a command of a person: whoever asks is answered, wherever the team is paused. */
export const replySource = (delivery: string, index: number) => `${delivery}/reply/${index}`

export function isReply(source: string): boolean {
  return /\/reply\/\d+$/.test(source)
}
