import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Person } from '../base/person.ts'
import type { Handle, HandlerContext } from '../commands/commands.ts'
import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import type { HumanRequestState } from '../people/human-request.ts'
import type { Command } from '../protocol/command.ts'
import type { Reader, Store, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { Tasks } from '../tasks/tasks.ts'
import type { GitHub } from './port.ts'
import type { RouteStep } from './terms.ts'

/** Dependencies of the GitHub team on the rest of the service. */
export interface GithubTeamOptions {
  readonly github: GitHub
  readonly store: Store
  readonly timers: Timers
  readonly clock: Clock
  readonly log: Log
  readonly handle: Handle
  readonly tasks: Pick<Tasks, 'delegate' | 'onReport' | 'onEnded'>
  readonly agents: TeamAgents
  readonly people: TeamPeople
  readonly mailboxes: TeamMailboxes
  readonly env: Readonly<Record<string, string | undefined>>
  redact(text: string): string
  team(): HandlerContext['team']
  isHalted(): boolean
}

interface TeamAgents {
  /** Pauses the agent until a person resumes it. */
  pause(tx: Tx, agent: string): Promise<void>
  onResumed(listener: (agent: string) => void): void
  sessions(reader: Reader): Promise<readonly TeamSession[]>
}

interface TeamSession {
  readonly name: string
  readonly session_state: string
  readonly paused: number
}

export interface TeamMailboxes {
  waitForMail(
    agent: string,
    options: { waitMs: number; evidence: string; signal: AbortSignal },
  ): Promise<readonly { readonly id: string; readonly task?: { readonly id: string } }[]>
  acknowledge(tx: Tx, agent: string, ids: readonly string[], evidence: string): Promise<unknown>
}

export interface TeamPeople {
  /** Asks for approval of a command. Returns the key of the request. */
  ask(tx: Tx, request: ApprovalRequest): Promise<number>
  /** Puts a notice into the inbox. */
  notify(
    tx: Tx,
    notice: { readonly agent: string; readonly question: string; readonly reason: string },
  ): Promise<void>
  find(reader: Reader, request: number): Promise<StoredRequest | undefined>
  approvals(
    reader: Reader,
    request: number,
  ): Promise<readonly { readonly person: string; readonly action_hash: string }[]>
  /** Calls the listener after a request was decided or expired; `req_7`. */
  onDecided(listener: (request: string) => void): void
}

export interface ApprovalRequest {
  readonly agent: string
  readonly question: string
  readonly reason: string
  readonly command: Command
  /** Key of the proposal; stored with the request. */
  readonly proposal: string
  readonly expiresAt: number
  readonly quorum: number
  readonly approvers: readonly string[] | undefined
}

interface StoredRequest {
  readonly id: number
  readonly state: HumanRequestState
  readonly quorum: number
  readonly context: string
  readonly action_hash: string | null
  readonly created_at: number
  readonly expires_at: number
  readonly decided_at: number | null
  readonly decided_by: string | null
}

/** Shared by all parts of the team. */
export interface GithubParts extends Omit<GithubTeamOptions, 'mailboxes' | 'env' | 'isHalted'> {
  /** The current configuration; throws when orc.yaml has no "github" section any more. */
  settings(): GithubConfig
  /** The login of the service on GitHub; undefined while GitHub cannot be asked. */
  ownLogin(): Promise<string | undefined>
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

/** The proposal that a request asks about; undefined for a request of another feature. */
export function proposalOf({ context }: Pick<StoredRequest, 'context'>): string | undefined {
  const { github } = JSON.parse(context) as { github?: unknown }
  return typeof github === 'string' ? github : undefined
}

/** The agent that orc.yaml assigns to the role, or the agent with the name of the role. */
export function agentFor(team: Team, settings: GithubConfig, role: string): string | undefined {
  return team.resolve(settings.team[role] ?? role)
}

/** Whether people decide on every proposal of this role: "requires_hitl" or one of the steps names it or its agent. */
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

export function personOf(team: Team, login: string): Person | undefined {
  return team.config.people.find(({ github }) => github?.toLowerCase() === login.toLowerCase())
}

/** People who may decide on proposals. */
export function approversOf({ config }: Team, { approvers }: GithubConfig): Person[] {
  return config.people.filter(({ name, role }) => role === 'operator' && (approvers?.includes(name) ?? true))
}

/** Only people who may decide are mentioned in a request for approval. */
export function approverLogins(team: Team, settings: GithubConfig): string[] {
  return approversOf(team, settings).flatMap(({ github }) => (github === undefined ? [] : [github]))
}
