import { hash } from 'node:crypto'
import { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import type { RepositoryAction } from '../core/action.ts'
import { readThread } from '../core/event.ts'
import type {
  ActionResult,
  GitHub,
  GitHubFailure,
  GitHubResult,
  PerformOptions,
  RepositoryFigures,
  TextSearch,
} from '../port.ts'
import { type Credentials, createApp, createDeliveries } from './app.ts'
import { createBranches } from './branches.ts'
import {
  type AuthoredText,
  failureOf,
  gone,
  isCredentialError,
  ownAmong,
  toActionResult,
} from './responses.ts'
import { type ApiResponse, createSurvey } from './survey.ts'

interface OctokitOptions {
  readonly credentials: Credentials
  readonly apiUrl: string
  readonly timeoutMs: number
  readonly userAgent: string
  now(): number
}

type Params = Record<string, unknown>
const PAGE = 100
const MAX_PAGES = 10
/** The credential of the App itself, beside the ids of its installations. */
const APP = 'app'

/** The port over Octokit. Callers retry, because they store their attempts. */
export function createOctokit(options: OctokitOptions): GitHub {
  const { credentials, apiUrl, timeoutMs, userAgent, now } = options
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  // Set on fetch, so that it covers the App's own calls for a token too.
  const fetchWithTimeout: typeof fetch = (url, init) =>
    fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) })
  const basic = {
    baseUrl: apiUrl.replace(/\/+$/, ''),
    userAgent,
    log: silent,
    request: { fetch: fetchWithTimeout },
  }
  const app = credentials.kind === 'app' ? createApp(basic, credentials, createAppAuth) : undefined
  const rateLimits = createRateLimitWaits(now)

  interface Access {
    readonly client: Octokit
    /** GitHub counts its limits by token, App or installation. */
    readonly credential: string
  }

  async function accessTo(repository: string | undefined): Promise<Access> {
    if (app !== undefined) {
      if (repository === undefined) return { client: app.asApp(), credential: APP }
      const id = await app.installationOf(repository)
      return { client: app.asInstallation(id), credential: String(id) }
    }
    const token = credentials.kind === 'token' ? credentials.token() : undefined
    // Without a token GitHub would answer with public data only, which looks like a valid answer.
    if (!token) throw new Error('the token is not set in the environment')
    return { client: new Octokit({ ...basic, auth: token }), credential: hash('sha256', token) }
  }

  async function request<Data>(
    repository: string | undefined,
    route: string,
    params: Params = {},
  ): Promise<GitHubResult<ApiResponse<Data>>> {
    const answer = await attempt<Data>(repository, route, params)
    if (answer.ok || answer.error.kind !== 'unauthenticated' || repository === undefined) return answer
    // The App may have been reinstalled, with a new installation id.
    return (await app?.forget(repository)) === true ? await attempt(repository, route, params) : answer
  }

  async function attempt<Data>(
    repository: string | undefined,
    route: string,
    params: Params,
  ): Promise<GitHubResult<ApiResponse<Data>>> {
    // The App looks up the installation with its own credentials.
    let credential = APP
    try {
      const isUnknown = app !== undefined && repository !== undefined && !app.knows(repository)
      const own = isUnknown ? rateLimits.failureFor(APP) : undefined
      if (own !== undefined) return { ok: false, error: own }
      const access = await accessTo(repository)
      credential = access.credential
      const left = rateLimits.failureFor(credential)
      if (left !== undefined) return { ok: false, error: left }
      const [owner, repo] = repository?.split('/') ?? []
      const names = route.includes('{owner}') && repository !== undefined ? { owner, repo } : {}
      const answer = await access.client.request(route, { ...names, ...params })
      return { ok: true, value: { data: answer.data as Data, headers: answer.headers } }
    } catch (error) {
      const failure = failureOf(error, now())
      rateLimits.note(credential, failure)
      if (isCredentialError(error)) rateLimits.note(APP, failure)
      return { ok: false, error: failure }
    }
  }

  async function call<Data>(
    repository: string | undefined,
    route: string,
    params: Params = {},
  ): Promise<GitHubResult<Data>> {
    const answer = await request<Data>(repository, route, params)
    return answer.ok ? { ok: true, value: answer.value.data } : answer
  }

  /** Reads pages until one is not full, up to a limit. */
  async function pages<Item>(
    repository: string,
    route: string,
    params: Params = {},
  ): Promise<GitHubResult<Item[]>> {
    const items: Item[] = []
    for (let page = 1; page <= MAX_PAGES; page++) {
      const answer = await call<Item[]>(repository, route, { ...params, per_page: PAGE, page })
      if (!answer.ok) return answer
      items.push(...answer.value)
      if (answer.value.length < PAGE) break
    }
    return { ok: true, value: items }
  }

  const branchesOf = (repository: string) =>
    createBranches(repository, (route, params) => call(repository, route, params))

  async function perform(
    repository: string,
    action: RepositoryAction,
    options: PerformOptions = {},
  ): Promise<GitHubResult<ActionResult>> {
    switch (action.kind) {
      case 'label':
        return await toActionResult(
          call(repository, 'POST /repos/{owner}/{repo}/issues/{issue_number}/labels', {
            issue_number: action.number,
            labels: [action.label],
          }),
        )
      case 'comment':
        return await toActionResult(
          call(repository, 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments', {
            issue_number: action.number,
            body: action.body,
          }),
        )
      case 'review':
        return await toActionResult(
          call(repository, 'POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews', {
            pull_number: action.number,
            body: action.body,
            event: 'COMMENT',
          }),
        )
      case 'close':
        return await toActionResult(
          call(repository, 'PATCH /repos/{owner}/{repo}/issues/{issue_number}', {
            issue_number: action.number,
            state: 'closed',
            state_reason: action.duplicate_of === undefined ? 'not_planned' : 'duplicate',
          }),
        )
      case 'branch':
      case 'pull_request':
        return await branchesOf(repository).perform(action, options)
    }
  }

  return {
    survey: createSurvey(credentials.kind, request),
    async whoAmI() {
      if (app !== undefined) {
        const answer = await call<{ slug: string }>(undefined, 'GET /app')
        return answer.ok ? { ok: true, value: `${answer.value.slug}[bot]` } : answer
      }
      const answer = await call<{ login: string }>(undefined, 'GET /user')
      return answer.ok ? { ok: true, value: answer.value.login } : answer
    },
    async look(repository, number) {
      const answer = await call<unknown>(repository, 'GET /repos/{owner}/{repo}/issues/{issue_number}', {
        issue_number: number,
      })
      if (!answer.ok) return answer
      const subject = readThread('issue', answer.value)
      const { repository_url: at = '' } = answer.value as { repository_url?: string }
      // For a moved or converted issue GitHub answers with another thread, perhaps in another repository.
      const isThere = at.toLowerCase().endsWith(`/repos/${repository.toLowerCase()}`)
      if (subject?.number !== number || !isThere) return gone(`#${number} no longer exists`)
      return { ok: true, value: subject }
    },
    async topicsOf(repository) {
      const answer = await call<{ topics?: string[] }>(repository, 'GET /repos/{owner}/{repo}')
      return answer.ok ? { ok: true, value: answer.value.topics ?? [] } : answer
    },
    async findPullRequest(repository, head, text, by) {
      const owner = repository.split('/')[0]!
      const found = await pages<AuthoredText>(repository, 'GET /repos/{owner}/{repo}/pulls', {
        head: `${owner}:${head}`,
        state: 'all',
      })
      return found.ok ? { ok: true, value: ownAmong(found.value, text, by) } : found
    },
    async findText({ repository, number, kind, since }: TextSearch, text, by) {
      const isReview = kind === 'review'
      const found = await pages<AuthoredText>(
        repository,
        isReview
          ? 'GET /repos/{owner}/{repo}/pulls/{number}/reviews'
          : 'GET /repos/{owner}/{repo}/issues/{number}/comments',
        { number, ...(isReview ? {} : { since: new Date(since).toISOString() }) },
      )
      return found.ok ? { ok: true, value: ownAmong(found.value, text, by) } : found
    },
    perform,
    headOf: (repository, base) => branchesOf(repository).headOf(base),
    async accountCreated(login, repository) {
      const found = await call<{ created_at?: string }>(repository, 'GET /users/{username}', {
        username: login,
      })
      if (!found.ok) return found.error.kind === 'gone' ? { ok: true, value: undefined } : found
      return { ok: true, value: found.value.created_at }
    },
    async filesOf(repository, number) {
      const files = await pages<{ filename: string }>(
        repository,
        'GET /repos/{owner}/{repo}/pulls/{pull_number}/files',
        { pull_number: number },
      )
      return files.ok ? { ok: true, value: files.value.map(({ filename }) => filename) } : files
    },
    async contributionsOf(repository, login, except) {
      const found = await call<{ number: number }[]>(repository, 'GET /repos/{owner}/{repo}/issues', {
        creator: login,
        state: 'all',
        per_page: PAGE,
      })
      return found.ok
        ? { ok: true, value: found.value.filter(({ number }) => number !== except).length }
        : found
    },
    async textOf(repository, path) {
      const found = await call<unknown>(repository, 'GET /repos/{owner}/{repo}/contents/{path}', { path })
      if (!found.ok) return found.error.kind === 'gone' ? { ok: true, value: undefined } : found
      const { content, encoding } = found.value as { content?: unknown; encoding?: unknown }
      const isText = typeof content === 'string' && encoding === 'base64'
      return { ok: true, value: isText ? Buffer.from(content, 'base64').toString('utf8') : undefined }
    },
    async commentsOf(repository, number) {
      const found = await pages<AuthoredText & { created_at: string }>(
        repository,
        'GET /repos/{owner}/{repo}/issues/{issue_number}/comments',
        { issue_number: number },
      )
      if (!found.ok) return found
      const value = found.value.map(({ user, body, created_at: at }) => ({
        ...{ author: user?.login ?? 'ghost', body: body ?? '', at },
      }))
      return { ok: true, value }
    },
    async openIssues(repository, label) {
      const found = await call<unknown[]>(repository, 'GET /repos/{owner}/{repo}/issues', {
        ...{ state: 'open', per_page: PAGE },
        ...(label === undefined ? {} : { labels: label }),
      })
      if (!found.ok) return found
      const threads = found.value.flatMap((one) => readThread('issue', one) ?? [])
      return { ok: true, value: threads.filter(({ kind }) => kind === 'issue') }
    },
    async figuresOf(repository, since) {
      const whole = await call<RepositoryCounts>(repository, 'GET /repos/{owner}/{repo}')
      if (!whole.ok) return whole
      const recent = await pages<DatedThread>(repository, 'GET /repos/{owner}/{repo}/issues', {
        ...{ state: 'all', since: new Date(since).toISOString() },
      })
      if (!recent.ok) return recent
      return { ok: true, value: figuresFrom(whole.value, recent.value, since) }
    },
    async untouchedSince(repository, time) {
      const found = await call<unknown[]>(repository, 'GET /repos/{owner}/{repo}/issues', {
        state: 'open',
        sort: 'updated',
        direction: 'asc',
        per_page: PAGE,
      })
      if (!found.ok) return found
      const threads = found.value.flatMap((one) => readThread('issue', one) ?? [])
      return { ok: true, value: threads.filter(({ updatedAt }) => Date.parse(updatedAt ?? '') < time) }
    },
    async filesAt(repository, folder) {
      const found = await call<unknown>(repository, 'GET /repos/{owner}/{repo}/contents/{path}', {
        path: folder,
      })
      if (!found.ok) return found.error.kind === 'gone' ? { ok: true, value: [] } : found
      const entries = Array.isArray(found.value) ? found.value : [found.value]
      const paths = entries.map((entry: { path?: unknown }) => entry.path)
      return { ok: true, value: paths.filter((path) => typeof path === 'string') }
    },
    ...(app === undefined ? {} : { deliveries: createDeliveries(request) }),
  }
}

interface RepositoryCounts {
  readonly stargazers_count?: number
  readonly forks_count?: number
  readonly open_issues_count?: number
  readonly pushed_at?: string | null
}

interface DatedThread {
  readonly created_at?: string
  readonly closed_at?: string | null
  readonly pull_request?: { readonly merged_at?: string | null } | null
}

/** `recent`: threads with activity since that time. */
function figuresFrom(
  whole: RepositoryCounts,
  recent: readonly DatedThread[],
  since: number,
): RepositoryFigures {
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

const LIMITED = 'GitHub rate limit: waiting until it resets'

/** Stops calls with a rate-limited credential until its limit resets: GitHub extends the limit of clients that go on. */
function createRateLimitWaits(now: () => number) {
  const until = new Map<string, number>()
  return {
    /** Undefined if calls are allowed. */
    failureFor(credential: string): GitHubFailure | undefined {
      const left = (until.get(credential) ?? 0) - now()
      if (left <= 0) {
        until.delete(credential)
        return undefined
      }
      return { kind: 'limited', message: LIMITED, retryAfterMs: left }
    },
    /** The longer of two limits applies. */
    note(credential: string, { retryAfterMs }: GitHubFailure): void {
      if (retryAfterMs === undefined) return
      until.set(credential, Math.max(until.get(credential) ?? 0, now() + retryAfterMs))
    },
  }
}
