import type { Action } from './action.ts'
import type { Subject } from './event.ts'
import type { Answer } from './failure.ts'

/** GitHub as the service uses it. It alone holds credentials; what can go wrong comes back as a value. */
export interface GitHub {
  /** The login that everything is written under. */
  whoAmI(): Promise<Answer<string>>
  /** An issue or a pull request as it stands now. */
  look(repository: string, number: number): Promise<Answer<Subject>>
  /** The first comment or review of that login that holds the text. */
  findWritten(place: WrittenPlace, text: string, by: string): Promise<Answer<string | undefined>>
  perform(repository: string, action: Action): Promise<Answer<Performed>>
  filesOf(repository: string, number: number): Promise<Answer<string[]>>
  /** How many issues and pull requests of that login the repository has, the one it is about not counted. */
  contributionsOf(repository: string, login: string, except: number): Promise<Answer<number>>
  /** Which of these paths there are, of those below a folder all. */
  filesAt(repository: string, folder: string): Promise<Answer<string[]>>
  /** Webhooks of the App that were not taken, since that time; undefined for a token, which cannot ask. */
  redeliverMissed(since: number): Promise<Answer<number>> | undefined
}

export interface WrittenPlace {
  readonly repository: string
  readonly number: number
  readonly kind: 'comment' | 'review'
  /** Epoch milliseconds; nothing before it is looked at. */
  readonly since: number
}

export interface Performed {
  /** Where it can be looked at. */
  readonly url?: string
  readonly number?: number
}
