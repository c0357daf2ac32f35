import type { Answer } from './failure.ts'

/** What GitHub says of our own standing with it, for `orc github setup`. Nothing is changed by asking. */
export interface Survey {
  self(): Promise<Answer<Self>>
  repository(name: string): Promise<Answer<RepositoryFacts>>
  /** Webhooks that lead here, of the App or of the repository. */
  hooks(name: string): Promise<Answer<readonly Hook[]>>
}

export interface Self {
  readonly kind: 'token' | 'app'
  readonly login: string
  /** Of a classic token; GitHub does not tell those of a fine-grained one. */
  readonly scopes?: readonly string[]
}

export interface RepositoryFacts {
  readonly isPrivate: boolean
  readonly isArchived: boolean
  readonly hasIssues: boolean
  /** What the account of a token may: pull, triage, push … */
  readonly roles?: readonly string[]
  /** What the App was granted there: `{ issues: 'write' }`. */
  readonly permissions?: Readonly<Record<string, string>>
  readonly events?: readonly string[]
  readonly isSuspended?: boolean
}

export interface Hook {
  readonly url: string
  readonly isActive: boolean
  readonly contentType: string
  /** Undefined: an App has its events apart. */
  readonly events?: readonly string[]
  /** What became of the last delivery, where GitHub says. */
  readonly lastStatus?: number
}
