import type { Result } from '../base/result.ts'
import type { RepositoryAction } from './core/action.ts'
import type { Subject } from './core/event.ts'

/** The service's access to GitHub. Only this port holds credentials, and failures are values. */
export interface GitHub {
  readonly survey: SetupSurvey
  /** The login of the service. */
  whoAmI(): Promise<GitHubResult<string>>
  /** The current state of an issue or a pull request. */
  look(repository: string, number: number): Promise<GitHubResult<Subject>>
  /** The first comment or review by that login that contains the text. Returns its URL. */
  findText(search: TextSearch, text: string, by: string): Promise<GitHubResult<string | undefined>>
  /** An open or closed pull request by that login from that branch that contains the text. Returns its URL. */
  findPullRequest(
    repository: string,
    head: string,
    text: string,
    by: string,
  ): Promise<GitHubResult<string | undefined>>
  /** The topics of the repository. */
  topicsOf(repository: string): Promise<GitHubResult<string[]>>
  /** Returns the URL of the created text, if GitHub reports one. */
  perform(
    repository: string,
    action: RepositoryAction,
    options?: PerformOptions,
  ): Promise<GitHubResult<string | undefined>>
  /** The head commit of a branch, by default the default branch. */
  headOf(repository: string, branch: string | undefined): Promise<GitHubResult<string>>
  /** Undefined for a deleted account. */
  accountCreated(login: string, repository: string): Promise<GitHubResult<string | undefined>>
  filesOf(repository: string, number: number): Promise<GitHubResult<string[]>>
  /** The number of issues and pull requests by that login, without the thread `except`. */
  contributionsOf(repository: string, login: string, except: number): Promise<GitHubResult<number>>
  /** The paths in a folder. */
  filesAt(repository: string, folder: string): Promise<GitHubResult<string[]>>
  /** A text file of the default branch; undefined for a binary or missing file. */
  textOf(repository: string, path: string): Promise<GitHubResult<string | undefined>>
  /** Oldest first. */
  commentsOf(repository: string, number: number): Promise<GitHubResult<ThreadComment[]>>
  /** Open issues, newest first. */
  openIssues(repository: string, label?: string): Promise<GitHubResult<Subject[]>>
  /** Statistics of the repository; `since` defines what is recent. */
  figuresOf(repository: string, since: number): Promise<GitHubResult<RepositoryFigures>>
  /** Open threads without activity since then, oldest first. */
  untouchedSince(repository: string, time: number): Promise<GitHubResult<Subject[]>>
  /** Only an App can list its webhook deliveries. */
  readonly deliveries?: {
    /** Failed deliveries since that time, oldest first. */
    missed(since: number): Promise<GitHubResult<MissedDelivery[]>>
    /** The redelivery has the same guid. */
    redeliver(id: number): Promise<GitHubResult<undefined>>
  }
}

export interface MissedDelivery {
  /** Id of the last attempt. */
  readonly id: number
  /** X-GitHub-Delivery. */
  readonly guid: string
}

export interface TextSearch {
  readonly repository: string
  readonly number: number
  readonly kind: 'comment' | 'review'
  /** Epoch milliseconds; older texts are skipped. */
  readonly since: number
}

interface ThreadComment {
  readonly author: string
  readonly body: string
  readonly at: string
}

export type RepositoryFigures = Readonly<Record<string, number | string>>

export interface PerformOptions {
  /** The commit message of a pull request with files. */
  readonly commit?: string | undefined
  /** The commit at which a branch without files starts. */
  readonly from?: string | undefined
}

/** Reads the service's own permissions and webhooks, for `orc github setup`. */
export interface SetupSurvey {
  self(): Promise<GitHubResult<AccountIdentity>>
  repository(name: string): Promise<GitHubResult<RepositoryFacts>>
  /** The webhooks of the App or of the repository. */
  hooks(name: string): Promise<GitHubResult<readonly WebhookFacts[]>>
}

export interface AccountIdentity {
  readonly kind: 'token' | 'app'
  readonly login: string
  /** Scopes of a classic token; GitHub does not report those of a fine-grained one. */
  readonly scopes?: readonly string[]
}

export interface RepositoryFacts {
  readonly isPrivate: boolean
  readonly isArchived: boolean
  readonly hasIssues: boolean
  /** Repository roles of the token's account: pull, triage, push … */
  readonly roles?: readonly string[]
  /** Permissions of the App: `{ issues: 'write' }`. */
  readonly permissions?: Readonly<Record<string, string>>
  readonly events?: readonly string[]
  readonly isSuspended?: boolean
}

export interface WebhookFacts {
  readonly url: string
  readonly isActive: boolean
  readonly contentType: string
  /** Undefined for an App, whose events belong to the installation. */
  readonly events?: readonly string[]
  /** HTTP status of the last delivery, if GitHub reports it. */
  readonly lastStatus?: number
}

/** Why a call to GitHub failed. */
export interface GitHubFailure {
  readonly kind: 'gone' | 'forbidden' | 'unauthenticated' | 'invalid' | 'limited' | 'unavailable' | 'timeout'
  readonly status?: number
  readonly message: string
  /** How long GitHub asks us to wait. */
  readonly retryAfterMs?: number
}

export type GitHubResult<Value> = Result<Value, GitHubFailure>

const RECOVERABLE: ReadonlySet<GitHubFailure['kind']> = new Set(['limited', 'unavailable', 'timeout'])

/** Whether the same call may succeed later. */
export function isRecoverable({ kind }: GitHubFailure): boolean {
  return RECOVERABLE.has(kind)
}
