import { BOT } from './github.ts'
import type { FakeRepository } from './repository.ts'

interface Asked {
  params: string[]
  query: URLSearchParams
  body: Record<string, unknown>
}

interface Result {
  status: number
  data: unknown
  /** What the real one would send out because of it. */
  event?: { type: string; payload: Record<string, unknown> }
}

export type FakeRoute = (repository: FakeRepository, asked: Asked) => Result

const NOT_FOUND: Result = { status: 404, data: { message: 'Not Found' } }
const invalid = (message: string): Result => ({
  status: 422,
  data: { message: `Validation Failed: ${message}` },
})
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const MOST = 65_536

const REPO = '/repos/[^/]+/[^/]+'

const ROUTES: readonly [method: string, path: string, route: FakeRoute][] = [
  ['GET', '/user', () => ({ status: 200, data: { login: BOT } })],
  ['GET', REPO, ({ name }) => ({ status: 200, data: { full_name: name, default_branch: 'main' } })],
  [
    'GET',
    `${REPO}/issues`,
    ({ threads, show }, { query }) => {
      const creator = query.get('creator')
      const found = [...threads.values()].filter(({ author }) => creator === null || author === creator)
      return { status: 200, data: found.map(show) }
    },
  ],
  [
    'GET',
    `${REPO}/issues/(\\d+)`,
    ({ threads, show }, { params }) => {
      const thread = threads.get(Number(params[0]))
      return thread === undefined ? NOT_FOUND : { status: 200, data: show(thread) }
    },
  ],
  [
    'PATCH',
    `${REPO}/issues/(\\d+)`,
    ({ threads, show }, { params, body }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined) return NOT_FOUND
      if (body.state !== 'open' && body.state !== 'closed') return invalid('state')
      const reasons = ['completed', 'not_planned', 'duplicate', 'reopened', null]
      if (body.state_reason !== undefined && !reasons.includes(body.state_reason as string))
        return invalid('state_reason')
      thread.state = body.state
      thread.state_reason = (body.state_reason as string | undefined) ?? null
      return {
        status: 200,
        data: show(thread),
        event: { type: 'issues', payload: { action: 'closed', issue: show(thread) } },
      }
    },
  ],
  [
    'POST',
    `${REPO}/issues/(\\d+)/labels`,
    ({ threads, show }, { params, body }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined) return NOT_FOUND
      const { labels } = body
      if (!Array.isArray(labels) || !labels.every(isText)) return invalid('labels')
      thread.labels = [...new Set([...thread.labels, ...labels])]
      return {
        status: 200,
        data: thread.labels.map((name) => ({ name })),
        event: { type: 'issues', payload: { action: 'labeled', issue: show(thread) } },
      }
    },
  ],
  [
    'GET',
    `${REPO}/issues/(\\d+)/comments`,
    ({ threads, showComment }, { params, query }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined) return NOT_FOUND
      const since = Date.parse(query.get('since') ?? '1970-01-01T00:00:00Z')
      const found = thread.comments.filter(({ createdAt }) => Date.parse(createdAt) >= since)
      return {
        status: 200,
        data: paged(
          found.map((comment) => showComment(thread, comment)),
          query,
        ),
      }
    },
  ],
  [
    'POST',
    `${REPO}/issues/(\\d+)/comments`,
    ({ threads, show, comment, showComment }, { params, body }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined) return NOT_FOUND
      if (!isText(body.body) || body.body.length > MOST) return invalid('body')
      const made = showComment(thread, comment(thread, BOT, body.body), 'MEMBER')
      return {
        status: 201,
        data: made,
        event: { type: 'issue_comment', payload: { action: 'created', issue: show(thread), comment: made } },
      }
    },
  ],
  [
    'GET',
    `${REPO}/pulls/(\\d+)/files`,
    ({ threads }, { params, query }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined || !thread.isPull) return NOT_FOUND
      return {
        status: 200,
        data: paged(
          thread.files.map((filename) => ({ filename })),
          query,
        ),
      }
    },
  ],
  [
    'GET',
    `${REPO}/pulls/(\\d+)/reviews`,
    ({ threads, showComment }, { params, query }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined || !thread.isPull) return NOT_FOUND
      return {
        status: 200,
        data: paged(
          thread.reviews.map((review) => showComment(thread, review)),
          query,
        ),
      }
    },
  ],
  [
    'POST',
    `${REPO}/pulls/(\\d+)/reviews`,
    ({ threads, nextId, showComment }, { params, body }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined || !thread.isPull) return NOT_FOUND
      if (body.event !== 'COMMENT' && body.event !== 'APPROVE' && body.event !== 'REQUEST_CHANGES')
        return invalid('event')
      if (!isText(body.body)) return invalid('body')
      const review = { id: nextId(), body: body.body, author: BOT, createdAt: new Date().toISOString() }
      thread.reviews.push(review)
      return { status: 200, data: showComment(thread, review) }
    },
  ],
  [
    'GET',
    `${REPO}/pulls`,
    ({ pulls }, { query }) => ({
      status: 200,
      data: pulls
        .filter(({ head }) => (query.get('head') ?? '').endsWith(`:${head}`))
        .map(({ number }) => ({ number })),
    }),
  ],
  [
    'POST',
    `${REPO}/pulls`,
    ({ pulls, branches, open }, { body }) => {
      const { head, base, title, body: text } = body
      if (!isText(head) || !isText(base) || !isText(title) || !branches.has(head)) return invalid('head')
      const { number } = open({ isPull: true, title })
      pulls.push({ head, base, title, body: String(text), number })
      return { status: 201, data: { number, html_url: `https://github.example/pull/${number}` } }
    },
  ],
  [
    'GET',
    `${REPO}/git/ref/heads(?:/|%2F)(.+)`,
    ({ branches }, { params }) => {
      const sha = branches.get(decodeURIComponent(params[0]!))
      return sha === undefined ? NOT_FOUND : { status: 200, data: { object: { sha } } }
    },
  ],
  [
    'POST',
    `${REPO}/git/refs`,
    ({ branches }, { body }) => {
      const [, branch] = /^refs\/heads\/(.+)$/.exec(String(body.ref)) ?? []
      if (branch === undefined || !/^[0-9a-f]{40}$/.test(String(body.sha))) return invalid('ref')
      if (branches.has(branch)) return { status: 422, data: { message: 'Reference already exists' } }
      branches.set(branch, String(body.sha))
      return { status: 201, data: { ref: body.ref } }
    },
  ],
  [
    'GET',
    `${REPO}/contents/(.*)`,
    ({ files, workflows }, { params }) => {
      const path = decodeURIComponent(params[0]!)
      if (path === '') return { status: 200, data: files.map((file) => ({ path: file })) }
      if (path === '.github/workflows')
        return { status: 200, data: workflows.map((file) => ({ path: file })) }
      return NOT_FOUND
    },
  ],
]

function paged<Item>(items: readonly Item[], query: URLSearchParams): Item[] {
  const size = Number(query.get('per_page') ?? 30)
  const page = Number(query.get('page') ?? 1)
  return items.slice((page - 1) * size, page * size)
}

export function findRoute(method: string, path: string): { route: FakeRoute; params: string[] } | undefined {
  for (const [wanted, pattern, route] of ROUTES) {
    const match = wanted === method ? new RegExp(`^${pattern}/?$`).exec(path) : null
    if (match !== null) return { route, params: match.slice(1) }
  }
  return undefined
}
