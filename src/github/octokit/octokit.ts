import { hash } from 'node:crypto'
import { Octokit } from '@octokit/core'
import type { RepositoryAction } from '../core/action.ts'
import { readThread, type Subject } from '../core/event.ts'
import type {
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
  mapped,
  ownAmong,
  ownerAndName,
  urlIn,
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
const THREAD = '/repos/{owner}/{repo}/issues/{number}'
const REPOSITORY = 'GET /repos/{owner}/{repo}'
const ISSUES = `${REPOSITORY}/issues`
const CONTENTS = `${REPOSITORY}/contents/{path}`
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
  const app = credentials.kind === 'app' ? createApp(basic, credentials) : undefined
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
      const names = route.includes('{owner}') && repository !== undefined ? ownerAndName(repository) : {}
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
    return await mapped(request<Data>(repository, route, params), ({ data }) => data)
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
  ): Promise<GitHubResult<string | undefined>> {
    if (action.kind === 'branch' || action.kind === 'pull_request')
      return await branchesOf(repository).perform(action, options)
    return await mapped(call(repository, ...requestFor(action)), urlIn)
  }

  const survey = createSurvey(credentials.kind, request)

  return {
    survey,
    whoAmI: () => mapped(survey.self(), ({ login }) => login),
    async look(repository, number) {
      const answer = await call<unknown>(repository, `${ISSUES}/{number}`, { number })
      if (!answer.ok) return answer
      const subject = readThread('issue', answer.value)
      const { repository_url: at = '' } = answer.value as { repository_url?: string }
      // For a moved or converted issue GitHub answers with another thread, perhaps in another repository.
      const isThere = at.toLowerCase().endsWith(`/repos/${repository.toLowerCase()}`)
      if (subject?.number !== number || !isThere) return gone(`#${number} no longer exists`)
      return { ok: true, value: subject }
    },
    topicsOf: (repository) =>
      mapped(call<{ topics?: string[] }>(repository, REPOSITORY), ({ topics = [] }) => topics),
    findPullRequest(repository, head, text, by) {
      const owner = repository.split('/')[0]!
      const query = { head: `${owner}:${head}`, state: 'all' }
      return mapped(pages<AuthoredText>(repository, `${REPOSITORY}/pulls`, query), (found) =>
        ownAmong(found, text, by),
      )
    },
    findText({ repository, number, kind, since }: TextSearch, text, by) {
      const found =
        kind === 'review'
          ? pages<AuthoredText>(repository, `${REPOSITORY}/pulls/{number}/reviews`, { number })
          : pages<AuthoredText>(repository, `${ISSUES}/{number}/comments`, {
              number,
              since: new Date(since).toISOString(),
            })
      return mapped(found, (texts) => ownAmong(texts, text, by))
    },
    perform,
    headOf: (repository, base) => branchesOf(repository).headOf(base),
    async accountCreated(login, repository) {
      const found = call<{ created_at?: string }>(repository, 'GET /users/{username}', { username: login })
      return unlessGone(await mapped(found, ({ created_at }) => created_at), undefined)
    },
    filesOf: (repository, number) =>
      mapped(
        pages<{ filename: string }>(repository, `${REPOSITORY}/pulls/{number}/files`, { number }),
        (files) => files.map(({ filename }) => filename),
      ),
    contributionsOf: (repository, login, except) =>
      mapped(
        call<{ number: number }[]>(repository, ISSUES, { creator: login, state: 'all', per_page: PAGE }),
        (found) => found.filter(({ number }) => number !== except).length,
      ),
    async textOf(repository, path) {
      const found = call<{ content?: unknown; encoding?: unknown }>(repository, CONTENTS, { path })
      const text = await mapped(found, ({ content, encoding }) =>
        typeof content === 'string' && encoding === 'base64'
          ? Buffer.from(content, 'base64').toString('utf8')
          : undefined,
      )
      return unlessGone(text, undefined)
    },
    commentsOf: (repository, number) =>
      mapped(
        pages<AuthoredText & { created_at: string }>(repository, `${ISSUES}/{number}/comments`, { number }),
        (found) =>
          found.map(({ user, body, created_at: at }) => ({
            ...{ author: user?.login ?? 'ghost', body: body ?? '', at },
          })),
      ),
    openIssues: (repository, label) =>
      mapped(
        call<unknown[]>(repository, ISSUES, {
          ...{ state: 'open', per_page: PAGE },
          ...(label === undefined ? {} : { labels: label }),
        }),
        (found) => threadsIn(found).filter(({ kind }) => kind === 'issue'),
      ),
    async figuresOf(repository, since) {
      const whole = await call<RepositoryCounts>(repository, REPOSITORY)
      if (!whole.ok) return whole
      const recent = await pages<DatedThread>(repository, ISSUES, {
        ...{ state: 'all', since: new Date(since).toISOString() },
      })
      if (!recent.ok) return recent
      return { ok: true, value: figuresFrom(whole.value, recent.value, since) }
    },
    untouchedSince: (repository, time) =>
      mapped(
        call<unknown[]>(repository, ISSUES, {
          ...{ state: 'open', sort: 'updated', direction: 'asc', per_page: PAGE },
        }),
        (found) => threadsIn(found).filter(({ updatedAt }) => Date.parse(updatedAt ?? '') < time),
      ),
    async filesAt(repository, folder) {
      const paths = await mapped(call<unknown>(repository, CONTENTS, { path: folder }), (found) =>
        (Array.isArray(found) ? found : [found])
          .map(({ path }: { path?: unknown }) => path)
          .filter((path) => typeof path === 'string'),
      )
      return unlessGone(paths, [])
    },
    ...(app === undefined ? {} : { deliveries: createDeliveries(request) }),
  }
}

/** The request for an action that is one call. */
function requestFor(
  action: Exclude<RepositoryAction, { kind: 'branch' | 'pull_request' }>,
): [route: string, params: Params] {
  const { number } = action
  switch (action.kind) {
    case 'label':
      return [`POST ${THREAD}/labels`, { number, labels: [action.label] }]
    case 'comment':
      return [`POST ${THREAD}/comments`, { number, body: action.body }]
    case 'review':
      return [
        'POST /repos/{owner}/{repo}/pulls/{number}/reviews',
        { number, body: action.body, event: 'COMMENT' },
      ]
    case 'close': {
      const reason = action.duplicate_of === undefined ? 'not_planned' : 'duplicate'
      return [`PATCH ${THREAD}`, { number, state: 'closed', state_reason: reason }]
    }
  }
}

function threadsIn(found: readonly unknown[]): Subject[] {
  return found.flatMap((one) => readThread('issue', one) ?? [])
}

/** A missing file or account is an answer, not a failure. */
function unlessGone<Value>(result: GitHubResult<Value>, instead: Value): GitHubResult<Value> {
  return !result.ok && result.error.kind === 'gone' ? { ok: true, value: instead } : result
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
