import type { Figures } from '../port.ts'

export interface RepositoryCounts {
  readonly stargazers_count?: number
  readonly forks_count?: number
  readonly open_issues_count?: number
  readonly pushed_at?: string | null
}

/** An issue or a pull request. */
export interface Dated {
  readonly created_at?: string
  readonly closed_at?: string | null
  readonly pull_request?: { readonly merged_at?: string | null } | null
}

/** `recent`: all that changed since then. */
export function figuresFrom(whole: RepositoryCounts, recent: readonly Dated[], since: number): Figures {
  const isRecent = (time: string | null | undefined) => Date.parse(time ?? '') >= since
  const issues = recent.filter((one) => !one.pull_request)
  const pulls = recent.filter((one) => one.pull_request)
  return {
    stars: whole.stargazers_count ?? 0,
    forks: whole.forks_count ?? 0,
    open_issues_and_pull_requests: whole.open_issues_count ?? 0,
    ...(whole.pushed_at ? { last_push: whole.pushed_at } : {}),
    issues_opened_recently: issues.filter(({ created_at }) => isRecent(created_at)).length,
    issues_closed_recently: issues.filter(({ closed_at }) => isRecent(closed_at)).length,
    pull_requests_opened_recently: pulls.filter(({ created_at }) => isRecent(created_at)).length,
    pull_requests_merged_recently: pulls.filter(({ pull_request }) => isRecent(pull_request?.merged_at))
      .length,
  }
}
