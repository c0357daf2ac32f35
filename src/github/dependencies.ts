import type { Sessions } from '../agents/sessions.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Handle } from '../commands/handle.ts'
import type { Team } from '../commands/team.ts'
import type { GithubConfig } from '../config/config.ts'
import type { Mailboxes } from '../messages/mailboxes.ts'
import type { Verdicts } from '../people/verdicts.ts'
import type { Store } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { Tasks } from '../tasks/tasks.ts'
import type { GitHub } from './port.ts'

/** Dependencies of the GitHub team on the rest of the service. */
export interface GithubTeamOptions {
  readonly github: GitHub
  readonly store: Store
  readonly timers: Timers
  readonly clock: Clock
  readonly log: Log
  readonly handle: Handle
  readonly tasks: Pick<Tasks, 'delegate' | 'onReport' | 'onEnded'>
  readonly sessions: Pick<Sessions, 'onResumed' | 'setPaused'>
  readonly verdicts: Pick<Verdicts, 'onDecided'>
  readonly mailboxes: Pick<Mailboxes, 'waitForMail' | 'acknowledge'>
  readonly env: Readonly<Record<string, string | undefined>>
  redact(text: string): string
  team(): Team
  isHalted(): boolean
}

/** The dependencies that all files of the team share. */
export interface GithubDependencies extends GithubTeamOptions {
  /** The current configuration; throws if orc.yaml has lost its "github" section. */
  settings(): GithubConfig
  /** The login of the service on GitHub; undefined while GitHub does not respond. */
  ownLogin(): Promise<string | undefined>
}

/** Common fields of public audit entries about an agent: `[orchestrator→triage]` and `[triage→orchestrator]` (S3.22). */
export const toAgent = (agent: string) => ({ class: 'public', actor: ORCHESTRATOR, subject: agent }) as const
export const fromAgent = (agent: string) =>
  ({ class: 'public', actor: agent, subject: ORCHESTRATOR }) as const

/** Types of audit entries: `[orchestrator→triage] TASK: …` (S3.22). */
export const AUDIT = {
  task: 'github.task',
  success: 'github.success',
  failure: 'github.failure',
  logged: 'github.logged',
  asked: 'github.asked',
  health: 'github.health',
  replayed: 'github.replayed',
} as const
