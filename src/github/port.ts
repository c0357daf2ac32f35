import type { Action } from './core/action.ts'
import type { Subject } from './core/event.ts'
import type { Answer } from './core/failure.ts'
import type { Survey } from './core/survey.ts'

/** GitHub as the service uses it. It alone holds credentials; what can go wrong comes back as a value. */
export interface GitHub {
  readonly survey: Survey
  /** The login that everything is written under. */
  whoAmI(): Promise<Answer<string>>
  /** An issue or a pull request as it stands now. */
  look(repository: string, number: number): Promise<Answer<Subject>>
  /** The first comment or review of that login that holds the text. */
  findWritten(place: WrittenPlace, text: string, by: string): Promise<Answer<string | undefined>>
  /** A pull request of that login from that branch that holds the text, open or not. */
  findPullRequest(
    repository: string,
    head: string,
    text: string,
    by: string,
  ): Promise<Answer<string | undefined>>
  /** What people put on the whole repository. */
  topicsOf(repository: string): Promise<Answer<string[]>>
  perform(repository: string, action: Action, how?: How): Promise<Answer<Performed>>
  /** The commit that a branch is at, the default one where none is named. */
  headOf(repository: string, branch: string | undefined): Promise<Answer<string>>
  /** When an account was made; undefined for one that is gone. */
  accountCreated(login: string, repository: string): Promise<Answer<string | undefined>>
  filesOf(repository: string, number: number): Promise<Answer<string[]>>
  /** How many issues and pull requests of that login the repository has, the one it is about not counted. */
  contributionsOf(repository: string, login: string, except: number): Promise<Answer<number>>
  /** Which of these paths there are, of those below a folder all. */
  filesAt(repository: string, folder: string): Promise<Answer<string[]>>
  /** A file of the default branch; undefined for what is no text, or is not there. */
  textOf(repository: string, path: string): Promise<Answer<string | undefined>>
  /** The comments of a thread, the oldest first. */
  commentsOf(repository: string, number: number): Promise<Answer<ThreadComment[]>>
  /** Open issues, with that label where one is named, the newest first. */
  openIssues(repository: string, label?: string): Promise<Answer<Subject[]>>
  /** How a repository is doing; recent is what happened since that time. */
  figuresOf(repository: string, since: number): Promise<Answer<Figures>>
  /** Open threads that nobody touched since then, the oldest first. */
  untouchedSince(repository: string, time: number): Promise<Answer<Subject[]>>
  /** Only an App can ask for what was sent to it. */
  readonly deliveries?: {
    /** Webhooks since that time that nobody took, the oldest first. */
    missed(since: number): Promise<Answer<MissedDelivery[]>>
    /** GitHub sends it again, under the same guid. */
    redeliver(id: number): Promise<Answer<undefined>>
  }
}

export interface MissedDelivery {
  /** Of the last attempt. */
  readonly id: number
  /** X-GitHub-Delivery. */
  readonly guid: string
}

export interface WrittenPlace {
  readonly repository: string
  readonly number: number
  readonly kind: 'comment' | 'review'
  /** Epoch milliseconds; nothing before it is looked at. */
  readonly since: number
}

export interface ThreadComment {
  readonly author: string
  readonly body: string
  readonly at: string
}

export type Figures = Readonly<Record<string, number | string>>

export interface How {
  /** What the commit of a pull request with files says. */
  readonly commit?: string | undefined
  /** The commit that a branch without files begins at. */
  readonly from?: string | undefined
}

export interface Performed {
  /** Where it can be looked at. */
  readonly url?: string
  readonly number?: number
}
