import { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import type { Action } from '../action.ts'
import { readThread } from '../event.ts'
import { type Answer, classify, type FailedCall, type GitHubFailure } from '../failure.ts'
import type { GitHub, Performed, WrittenPlace } from '../github.ts'
import { createApp } from './app.ts'
import { type CommitFile, commitFiles } from './commit.ts'
import type { Credentials } from './credentials.ts'
import { createDeliveries } from './deliveries.ts'
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
const QUIET = 'GitHub asked to be left alone for a while'

/** The port over Octokit. Retries and waits are the caller's, which keeps them in the store. */
export function createOctokit(options: OctokitOptions): GitHub {
  const { credentials, apiUrl, timeoutMs, userAgent, now } = options
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  // Here, and not with each call: an App's own call for a token ends in time as well.
  const timely: typeof fetch = (url, init) => fetch(url, { ...init, signal: AbortSignal.timeout(timeoutMs) })
  const basic = { baseUrl: apiUrl.replace(/\/+$/, ''), userAgent, log: silent, request: { fetch: timely } }
  const app = credentials.kind === 'app' ? createApp(basic, credentials, createAppAuth) : undefined

  /** Whoever goes on asking while they are limited is limited for longer, or banned. */
  const quietUntil = new Map<string, number>()

  function clientFor(repository: string | undefined): Promise<Octokit> | Octokit {
    if (app !== undefined) return repository === undefined ? app.asApp() : app.forRepository(repository)
    const token = credentials.kind === 'token' ? credentials.token() : undefined
    // GitHub answers strangers too, and what it answers them would be believed.
    if (!token) throw new Error('the token is not in the environment')
    return new Octokit({ ...basic, auth: token })
  }

  async function exchange<Data>(
    repository: string | undefined,
    route: string,
    params: Params = {},
  ): Promise<Answer<Exchanged<Data>>> {
    // An App is limited by installation, and a token as a whole.
    const limited = app === undefined ? '' : (repository ?? '')
    const left = (quietUntil.get(limited) ?? 0) - now()
    if (left > 0) return { ok: false, failure: { kind: 'limited', message: QUIET, retryAfterMs: left } }
    const answer = await attempt<Data>(repository, route, params)
    if (!answer.ok && answer.failure.retryAfterMs !== undefined)
      quietUntil.set(limited, now() + answer.failure.retryAfterMs)
    if (answer.ok || answer.failure.kind !== 'unauthenticated' || repository === undefined) return answer
    // The App may have been installed anew, with other tokens.
    return app?.forget(repository) === true ? await attempt(repository, route, params) : answer
  }

  async function attempt<Data>(
    repository: string | undefined,
    route: string,
    params: Params,
  ): Promise<Answer<Exchanged<Data>>> {
    try {
      const client = await clientFor(repository)
      const [owner, repo] = repository?.split('/') ?? []
      const answer = await client.request(route, {
        ...(repository === undefined ? {} : { owner, repo }),
        ...params,
      })
      return { ok: true, value: { data: answer.data as Data, headers: answer.headers } }
    } catch (error) {
      return { ok: false, failure: failureOf(error, now()) }
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

  async function perform(repository: string, action: Action, commit?: string): Promise<Answer<Performed>> {
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
        return await makeBranch(repository, action.branch, action)
      case 'pull_request':
        return await openPullRequest(repository, action, commit)
    }
  }

  async function defaultBranch(repository: string): Promise<Answer<string>> {
    const answer = await call<{ default_branch: string }>(repository, 'GET /repos/{owner}/{repo}')
    return answer.ok ? { ok: true, value: answer.value.default_branch } : answer
  }

  async function makeBranch(
    repository: string,
    branch: string,
    {
      base: from,
      files,
      message = '',
    }: {
      base?: string | undefined
      files?: readonly CommitFile[] | undefined
      message?: string | undefined
    },
  ): Promise<Answer<Performed>> {
    const base = from === undefined ? await defaultBranch(repository) : { ok: true as const, value: from }
    if (!base.ok) return base
    const head = await call<{ object: { sha: string } }>(
      repository,
      'GET /repos/{owner}/{repo}/git/ref/{ref}',
      {
        ref: `heads/${base.value}`,
      },
    )
    if (!head.ok) return head
    if (files !== undefined) {
      const commit = { branch, parent: head.value.object.sha, message, files }
      return await commitFiles((route, params) => call(repository, route, params), commit)
    }
    const made = await call(repository, 'POST /repos/{owner}/{repo}/git/refs', {
      ref: `refs/heads/${branch}`,
      sha: head.value.object.sha,
    })
    if (made.ok) return { ok: true, value: {} }
    if (!/already exists/i.test(made.failure.message)) return made
    // We, before a crash, or somebody else: an empty branch carries no mark, but it is empty.
    const there = await call<{ object: { sha: string } }>(
      repository,
      'GET /repos/{owner}/{repo}/git/ref/{ref}',
      { ref: `heads/${branch}` },
    )
    if (!there.ok) return there
    return there.value.object.sha === head.value.object.sha
      ? { ok: true, value: {} }
      : notOurs(`a branch ${branch}`)
  }

  async function openPullRequest(
    repository: string,
    { head, base, title, body, files }: Extract<Action, { kind: 'pull_request' }>,
    commit: string | undefined,
  ): Promise<Answer<Performed>> {
    const owner = repository.split('/')[0]!
    // The body ends with a mark, and so does that of ours.
    const mark = body.slice(Math.max(0, body.lastIndexOf('<!--')))
    const open = await call<Written[]>(repository, 'GET /repos/{owner}/{repo}/pulls', {
      head: `${owner}:${head}`,
      state: 'open',
    })
    if (!open.ok) return open
    const own = open.value.find((one) => one.body?.includes(mark))
    if (own !== undefined) return { ok: true, value: performed(own) }
    if (open.value.length > 0) return notOurs(`a pull request from ${head}`)
    if (files !== undefined) {
      const message = commit ?? `${title}\n\n${mark}`
      const branch = await makeBranch(repository, head, {
        ...(base === undefined ? {} : { base }),
        files,
        message,
      })
      if (!branch.ok) return branch
    }
    const into = base === undefined ? await defaultBranch(repository) : { ok: true as const, value: base }
    if (!into.ok) return into
    return await done(
      call(repository, 'POST /repos/{owner}/{repo}/pulls', { head, base: into.value, title, body }),
    )
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

interface Written {
  body?: string | null
  html_url?: string
  user?: { login?: string } | null
}

function ownAmong(written: readonly Written[], text: string, by: string): string | undefined {
  const own = written.find(({ body, user }) => user?.login === by && body?.includes(text))
  return own === undefined ? undefined : (own.html_url ?? '')
}

async function done(calling: Promise<Answer<unknown>>): Promise<Answer<Performed>> {
  const answer = await calling
  return answer.ok ? { ok: true, value: performed(answer.value) } : answer
}

function performed(data: unknown): Performed {
  const { html_url, number } = (data ?? {}) as { html_url?: unknown; number?: unknown }
  return {
    ...(typeof html_url === 'string' ? { url: html_url } : {}),
    ...(typeof number === 'number' ? { number } : {}),
  }
}

function notOurs(what: string): Answer<never> {
  return { ok: false, failure: { kind: 'invalid', message: `There is ${what} already, and it is not ours` } }
}

function gone(message: string): Answer<never> {
  return { ok: false, failure: { kind: 'gone', message } }
}

interface HttpError {
  status?: number
  response?: { headers?: FailedCall['headers'] }
  request?: { url?: string }
}

/** Where an App asks for what it needs to ask anything else. */
const CREDENTIALS = /\/(?:installation|access_tokens)$/

function failureOf(error: unknown, now: number): GitHubFailure {
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  const { status, response, request } = error as HttpError
  if (response !== undefined && typeof status === 'number') {
    const failure = classify({ status, message, headers: response.headers ?? {} }, now)
    // Not what was asked about is gone, but what we ask with.
    return failure.kind === 'gone' && CREDENTIALS.test(request?.url ?? '')
      ? { kind: 'unauthenticated', status, message: 'The GitHub App is not installed there (any more)' }
      : failure
  }
  const cause = (error as { cause?: unknown }).cause
  const isLate = [name, cause instanceof Error ? cause.name : ''].some(
    (one) => one === 'TimeoutError' || one === 'AbortError',
  )
  if (isLate) return { kind: 'timeout', message: 'GitHub did not answer in time' }
  if (name !== 'HttpError')
    return {
      kind: 'unauthenticated',
      message: `The credentials for GitHub cannot be used: ${message.slice(0, 200)}`,
    }
  return { kind: 'unavailable', message: `GitHub cannot be reached: ${message.slice(0, 200)}` }
}
