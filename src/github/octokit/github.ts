import { createAppAuth } from '@octokit/auth-app'
import { Octokit } from '@octokit/core'
import type { Action } from '../action.ts'
import { readThread } from '../event.ts'
import { type Answer, classify, type FailedCall, type GitHubFailure } from '../failure.ts'
import type { GitHub, Performed, WrittenPlace } from '../github.ts'
import { createApp } from './app.ts'
import type { Credentials } from './credentials.ts'

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

/** The port over Octokit. Retries and waits are the caller's, which keeps them in the store. */
export function createOctokit(options: OctokitOptions): GitHub {
  const { credentials, apiUrl, timeoutMs, userAgent, now } = options
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const basic = { baseUrl: apiUrl.replace(/\/+$/, ''), userAgent, log: silent }
  const app = credentials.kind === 'app' ? createApp(basic, credentials, createAppAuth) : undefined

  function clientFor(repository: string | undefined): Promise<Octokit> | Octokit {
    if (app !== undefined) return repository === undefined ? app.asApp() : app.forRepository(repository)
    const token = credentials.kind === 'token' ? credentials.token() : undefined
    return new Octokit({ ...basic, ...(token === undefined ? {} : { auth: token }) })
  }

  async function call<Data>(
    repository: string | undefined,
    route: string,
    params: Params = {},
  ): Promise<Answer<Data>> {
    try {
      const client = await clientFor(repository)
      const [owner, repo] = repository?.split('/') ?? []
      const answer = await client.request(route, {
        ...(repository === undefined ? {} : { owner, repo }),
        ...params,
        request: { signal: AbortSignal.timeout(timeoutMs) },
      })
      return { ok: true, value: answer.data as Data }
    } catch (error) {
      return { ok: false, failure: failureOf(error, now()) }
    }
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

  async function perform(repository: string, action: Action): Promise<Answer<Performed>> {
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
        return await makeBranch(repository, action.branch, action.base)
      case 'pull_request':
        return await openPullRequest(repository, action)
    }
  }

  async function defaultBranch(repository: string): Promise<Answer<string>> {
    const answer = await call<{ default_branch: string }>(repository, 'GET /repos/{owner}/{repo}')
    return answer.ok ? { ok: true, value: answer.value.default_branch } : answer
  }

  async function makeBranch(repository: string, branch: string, from?: string): Promise<Answer<Performed>> {
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
    const made = await call(repository, 'POST /repos/{owner}/{repo}/git/refs', {
      ref: `refs/heads/${branch}`,
      sha: head.value.object.sha,
    })
    // It is there already: somebody, or we before a crash, made it.
    if (!made.ok && /already exists/i.test(made.failure.message)) return { ok: true, value: {} }
    return made.ok ? { ok: true, value: {} } : made
  }

  async function openPullRequest(
    repository: string,
    { head, base, title, body }: Extract<Action, { kind: 'pull_request' }>,
  ): Promise<Answer<Performed>> {
    const owner = repository.split('/')[0]!
    const open = await call<unknown[]>(repository, 'GET /repos/{owner}/{repo}/pulls', {
      head: `${owner}:${head}`,
      state: 'open',
    })
    if (!open.ok) return open
    if (open.value.length > 0) return { ok: true, value: performed(open.value[0]) }
    const into = base === undefined ? await defaultBranch(repository) : { ok: true as const, value: base }
    if (!into.ok) return into
    return await done(
      call(repository, 'POST /repos/{owner}/{repo}/pulls', { head, base: into.value, title, body }),
    )
  }

  return {
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
      // Moved or converted: GitHub answers with something else than asked for.
      if (subject === undefined || subject.number !== number) return gone(`#${number} is not there any more`)
      return { ok: true, value: subject }
    },
    async findWritten({ repository, number, kind, since }: WrittenPlace, text, by) {
      const isReview = kind === 'review'
      const found = await pages<{
        body?: string | null
        html_url?: string
        user?: { login?: string } | null
      }>(
        repository,
        isReview
          ? 'GET /repos/{owner}/{repo}/pulls/{number}/reviews'
          : 'GET /repos/{owner}/{repo}/issues/{number}/comments',
        { number, ...(isReview ? {} : { since: new Date(since).toISOString() }) },
      )
      if (!found.ok) return found
      const own = found.value.find(({ body, user }) => user?.login === by && body?.includes(text))
      return { ok: true, value: own === undefined ? undefined : (own.html_url ?? '') }
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
    async filesAt(repository, folder) {
      const found = await call<unknown>(repository, 'GET /repos/{owner}/{repo}/contents/{path}', {
        path: folder,
      })
      if (!found.ok) return found.failure.kind === 'gone' ? { ok: true, value: [] } : found
      const entries = Array.isArray(found.value) ? found.value : [found.value]
      const paths = entries.map((entry: { path?: unknown }) => entry.path)
      return { ok: true, value: paths.filter((path) => typeof path === 'string') }
    },
    redeliverMissed(since) {
      return app === undefined ? undefined : redeliver(since)
    },
  }

  async function redeliver(since: number): Promise<Answer<number>> {
    const found = await call<{ id: number; guid: string; delivered_at: string; status_code: number }[]>(
      undefined,
      'GET /app/hook/deliveries',
      { per_page: PAGE },
    )
    if (!found.ok) return found
    const recent = found.value.filter(({ delivered_at }) => Date.parse(delivered_at) >= since)
    const taken = new Set(recent.filter((one) => one.status_code < 400).map(({ guid }) => guid))
    const missed = recent.filter(({ guid }, index) => {
      const isLatest = recent.findIndex((one) => one.guid === guid) === index
      return isLatest && !taken.has(guid)
    })
    for (const { id } of missed) {
      const asked = await call(undefined, 'POST /app/hook/deliveries/{delivery_id}/attempts', {
        delivery_id: id,
      })
      if (!asked.ok) return asked
    }
    return { ok: true, value: missed.length }
  }
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

function gone(message: string): Answer<never> {
  return { ok: false, failure: { kind: 'gone', message } }
}

function failureOf(error: unknown, now: number): GitHubFailure {
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  const { status, response } = error as { status?: number; response?: { headers?: FailedCall['headers'] } }
  if (response !== undefined && typeof status === 'number') {
    return classify({ status, message, headers: response.headers ?? {} }, now)
  }
  const cause = (error as { cause?: unknown }).cause
  const isLate = [name, cause instanceof Error ? cause.name : ''].some(
    (one) => one === 'TimeoutError' || one === 'AbortError',
  )
  if (isLate) return { kind: 'timeout', message: 'GitHub did not answer in time' }
  return { kind: 'unavailable', message: `GitHub cannot be reached: ${message.slice(0, 200)}` }
}
