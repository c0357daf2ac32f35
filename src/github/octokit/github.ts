import { hash } from 'node:crypto'
import { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import type { Action } from '../core/action.ts'
import { readThread } from '../core/event.ts'
import type { Answer } from '../core/failure.ts'
import type { GitHub, How, Performed, WrittenPlace } from '../port.ts'
import { done, failureOf, gone, isOfCredentials, ownAmong, type Written } from './answers.ts'
import { createApp } from './app.ts'
import { createBranches } from './branches.ts'
import type { Credentials } from './credentials.ts'
import { createDeliveries } from './deliveries.ts'
import { type Dated, figuresFrom, type RepositoryCounts } from './figures.ts'
import { createSilence } from './silence.ts'
import { createSurvey, type Exchanged } from './survey.ts'

export interface OctokitOptions {
  readonly credentials: Credentials
  readonly apiUrl: string
  readonly timeoutMs: number
  readonly userAgent: string
  now(): number
}

type Params = Record<string, unknown>
const PAGE = 100
const MOST_PAGES = 10
/** Beside the numbers of its installations. */
const APP = 'app'

/** The port over Octokit. Retries and waits are the caller's, which keeps them in the store. */
export function createOctokit(options: OctokitOptions): GitHub {
  const { credentials, apiUrl, timeoutMs, userAgent, now } = options
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  // Here, and not with each call: an App's own call for a token ends in time as well.
  const timely: typeof fetch = (url, init) => fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) })
  const basic = { baseUrl: apiUrl.replace(/\/+$/, ''), userAgent, log: silent, request: { fetch: timely } }
  const app = credentials.kind === 'app' ? createApp(basic, credentials, createAppAuth) : undefined
  const silence = createSilence(now)

  interface Access {
    readonly client: Octokit
    /** What GitHub's limits are counted by: a token, an App, or an installation of it. */
    readonly credential: string
  }

  async function accessTo(repository: string | undefined): Promise<Access> {
    if (app !== undefined) {
      if (repository === undefined) return { client: app.asApp(), credential: APP }
      const id = await app.installationOf(repository)
      return { client: app.asInstallation(id), credential: String(id) }
    }
    const token = credentials.kind === 'token' ? credentials.token() : undefined
    // GitHub answers strangers too, and what it answers them would be believed.
    if (!token) throw new Error('the token is not in the environment')
    return { client: new Octokit({ ...basic, auth: token }), credential: hash('sha256', token) }
  }

  async function exchange<Data>(
    repository: string | undefined,
    route: string,
    params: Params = {},
  ): Promise<Answer<Exchanged<Data>>> {
    const answer = await attempt<Data>(repository, route, params)
    if (answer.ok || answer.failure.kind !== 'unauthenticated' || repository === undefined) return answer
    // The App may have been installed anew, with other tokens.
    return (await app?.forget(repository)) === true ? await attempt(repository, route, params) : answer
  }

  async function attempt<Data>(
    repository: string | undefined,
    route: string,
    params: Params,
  ): Promise<Answer<Exchanged<Data>>> {
    // Which installation it is, the App itself asks.
    let credential = APP
    try {
      const isUnknown = app !== undefined && repository !== undefined && !app.knows(repository)
      const own = isUnknown ? silence.left(APP) : undefined
      if (own !== undefined) return { ok: false, failure: own }
      const access = await accessTo(repository)
      credential = access.credential
      const left = silence.left(credential)
      if (left !== undefined) return { ok: false, failure: left }
      const [owner, repo] = repository?.split('/') ?? []
      const place = route.includes('{owner}') && repository !== undefined ? { owner, repo } : {}
      const answer = await access.client.request(route, { ...place, ...params })
      return { ok: true, value: { data: answer.data as Data, headers: answer.headers } }
    } catch (error) {
      const failure = failureOf(error, now())
      silence.note(credential, failure)
      if (isOfCredentials(error)) silence.note(APP, failure)
      return { ok: false, failure }
    }
  }

  async function call<Data>(
    repository: string | undefined,
    route: string,
    params: Params = {},
  ): Promise<Answer<Data>> {
    const answer = await exchange<Data>(repository, route, params)
    return answer.ok ? { ok: true, value: answer.value.data } : answer
  }

  /** Pages until one is not full, and never without an end. */
  async function pages<Item>(
    repository: string,
    route: string,
    params: Params = {},
  ): Promise<Answer<Item[]>> {
    const items: Item[] = []
    for (let page = 1; page <= MOST_PAGES; page++) {
      const answer = await call<Item[]>(repository, route, { ...params, per_page: PAGE, page })
      if (!answer.ok) return answer
      items.push(...answer.value)
      if (answer.value.length < PAGE) break
    }
    return { ok: true, value: items }
  }

  const branchesOf = (repository: string) =>
    createBranches(repository, (route, params) => call(repository, route, params))

  async function perform(repository: string, action: Action, how: How = {}): Promise<Answer<Performed>> {
    switch (action.kind) {
      case 'label':
        return await done(
          call(repository, 'POST /repos/{owner}/{repo}/issues/{issue_number}/labels', {
            issue_number: action.number,
            labels: [action.label],
          }),
        )
      case 'comment':
        return await done(
          call(repository, 'POST /repos/{owner}/{repo}/issues/{issue_number}/comments', {
            issue_number: action.number,
            body: action.body,
          }),
        )
      case 'review':
        return await done(
          call(repository, 'POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews', {
            pull_number: action.number,
            body: action.body,
            event: 'COMMENT',
          }),
        )
      case 'close':
        return await done(
          call(repository, 'PATCH /repos/{owner}/{repo}/issues/{issue_number}', {
            issue_number: action.number,
            state: 'closed',
            state_reason: action.duplicate_of === undefined ? 'not_planned' : 'duplicate',
          }),
        )
      case 'branch':
      case 'pull_request':
        return await branchesOf(repository).perform(action, how)
    }
  }

  return {
    survey: createSurvey(credentials.kind, exchange),
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
      // Moved or converted: GitHub answers with something else than asked for, in another repository perhaps.
      const isThere = at.toLowerCase().endsWith(`/repos/${repository.toLowerCase()}`)
      if (subject?.number !== number || !isThere) return gone(`#${number} is not there any more`)
      return { ok: true, value: subject }
    },
    async topicsOf(repository) {
      const answer = await call<{ topics?: string[] }>(repository, 'GET /repos/{owner}/{repo}')
      return answer.ok ? { ok: true, value: answer.value.topics ?? [] } : answer
    },
    async findPullRequest(repository, head, text, by) {
      const owner = repository.split('/')[0]!
      const found = await pages<Written>(repository, 'GET /repos/{owner}/{repo}/pulls', {
        head: `${owner}:${head}`,
        state: 'all',
      })
      return found.ok ? { ok: true, value: ownAmong(found.value, text, by) } : found
    },
    async findWritten({ repository, number, kind, since }: WrittenPlace, text, by) {
      const isReview = kind === 'review'
      const found = await pages<Written>(
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
      if (!found.ok) return found.failure.kind === 'gone' ? { ok: true, value: undefined } : found
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
      if (!found.ok) return found.failure.kind === 'gone' ? { ok: true, value: undefined } : found
      const { content, encoding } = found.value as { content?: unknown; encoding?: unknown }
      const isText = typeof content === 'string' && encoding === 'base64'
      return { ok: true, value: isText ? Buffer.from(content, 'base64').toString('utf8') : undefined }
    },
    async commentsOf(repository, number) {
      const found = await pages<Written & { created_at: string }>(
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
      const recent = await pages<Dated>(repository, 'GET /repos/{owner}/{repo}/issues', {
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
      if (!found.ok) return found.failure.kind === 'gone' ? { ok: true, value: [] } : found
      const entries = Array.isArray(found.value) ? found.value : [found.value]
      const paths = entries.map((entry: { path?: unknown }) => entry.path)
      return { ok: true, value: paths.filter((path) => typeof path === 'string') }
    },
    ...(app === undefined ? {} : { deliveries: createDeliveries(exchange) }),
  }
}
