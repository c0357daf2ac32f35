import { description } from './description.ts'
import { GIT_ROUTES } from './git-routes.ts'
import { type FakeRepository, showUser } from './repository.ts'

export interface Asked {
  params: string[]
  query: URLSearchParams
  body: Record<string, unknown>
  /** The login of the credentials. */
  by: string
}

export interface Result {
  status: number
  data: unknown
  headers?: Record<string, string>
  /** The webhook that GitHub would send for the call. */
  event?: { type: string; payload: Record<string, unknown> }
}

export type FakeRoute = (repository: FakeRepository, asked: Asked) => Result

const DOCS = 'https://docs.github.com/rest'
/** A deleted account. */
export const GONE = 'gone-account'

export function refusal(status: number, message: string): Result {
  return { status, data: { message, documentation_url: DOCS, status: String(status) } }
}

const NOT_FOUND = refusal(404, 'Not Found')
const invalid = (field: string): Result => ({
  status: 422,
  data: {
    message: 'Validation Failed',
    errors: [{ resource: 'Issue', code: 'invalid', field }],
    documentation_url: DOCS,
  },
})
const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const MOST = 65_536

const REPO = '/repos/[^/]+/[^/]+'

function example(method: string, template: string, status: number): Record<string, unknown> {
  const shown = description().example(method, template, status)
  return (Array.isArray(shown) ? shown[0] : shown) as Record<string, unknown>
}

const ROUTES: readonly [method: string, path: string, route: FakeRoute][] = [
  [
    'GET',
    '/user',
    (_, { by }) => ({
      status: 200,
      data: { ...example('get', '/user', 200), ...showUser(by), user_view_type: 'private' },
    }),
  ],
  [
    'GET',
    '/users/([^/]+)',
    (_, { params }) => {
      const login = decodeURIComponent(params[0]!)
      if (login === GONE) return NOT_FOUND
      const shown = example('get', '/users/{username}', 200)
      const created_at = '2020-01-15T10:00:00Z'
      return { status: 200, data: { ...shown, ...showUser(login), user_view_type: 'public', created_at } }
    },
  ],
  [
    'GET',
    REPO,
    ({ name, topics }) => ({
      status: 200,
      data: {
        ...example('get', '/repos/{owner}/{repo}', 200),
        // GitHub's own examples lack some of these fields.
        ...{ source: undefined, parent: undefined, template_repository: undefined },
        full_name: name,
        default_branch: 'main',
        topics,
        language: null,
      },
    }),
  ],
  [
    'GET',
    `${REPO}/issues`,
    ({ threads, show }, { query }) => {
      const [creator, state, label] = ['creator', 'state', 'labels'].map((name) => query.get(name))
      const found = [...threads.values()].filter(
        (thread) =>
          (!creator || thread.author === creator) &&
          (state === 'all' || thread.state === (state ?? 'open')) &&
          (!label || thread.labels.includes(label)),
      )
      return { status: 200, data: paged(found, query).map(show) }
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
    ({ threads, show, showLabels }, { params, body }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined) return NOT_FOUND
      const { labels } = body
      if (!Array.isArray(labels) || !labels.every(isText)) return invalid('labels')
      thread.labels = [...new Set([...thread.labels, ...labels])]
      return {
        status: 200,
        data: showLabels(thread),
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
      return { status: 200, data: paged(found, query).map((comment) => showComment(thread, comment)) }
    },
  ],
  [
    'POST',
    `${REPO}/issues/(\\d+)/comments`,
    ({ threads, show, comment, showComment }, { params, body, by }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined) return NOT_FOUND
      if (!isText(body.body) || body.body.length > MOST) return invalid('body')
      const made = showComment(thread, comment(thread, by, body.body), 'MEMBER')
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
      const file = example('get', '/repos/{owner}/{repo}/pulls/{pull_number}/files', 200)
      return { status: 200, data: paged(thread.files, query).map((filename) => ({ ...file, filename })) }
    },
  ],
  [
    'GET',
    `${REPO}/pulls/(\\d+)/reviews`,
    ({ threads, showReview }, { params, query }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined || !thread.isPull) return NOT_FOUND
      return { status: 200, data: paged(thread.reviews, query).map((review) => showReview(thread, review)) }
    },
  ],
  [
    'POST',
    `${REPO}/pulls/(\\d+)/reviews`,
    ({ threads, nextId, showReview }, { params, body, by }) => {
      const thread = threads.get(Number(params[0]))
      if (thread === undefined || !thread.isPull) return NOT_FOUND
      if (!isText(body.body)) return invalid('body')
      const review = { id: nextId(), body: body.body, author: by, createdAt: new Date().toISOString() }
      thread.reviews.push(review)
      return { status: 200, data: showReview(thread, review) }
    },
  ],
  [
    'GET',
    `${REPO}/pulls`,
    ({ pulls, threads, showPull }, { query }) => {
      const state = query.get('state') ?? 'open'
      const found = pulls
        .filter(({ head }) => (query.get('head') ?? '').endsWith(`:${head}`))
        .map(({ number }) => threads.get(number)!)
        .filter((thread) => state === 'all' || thread.state === state)
      const shown = example('get', '/repos/{owner}/{repo}/pulls', 200)
      return { status: 200, data: found.map((thread) => ({ ...shown, ...showPull(thread) })) }
    },
  ],
  [
    'POST',
    `${REPO}/pulls`,
    ({ pulls, branches, threads, open, showPull }, { body, by }) => {
      const { head, base, title, body: text } = body
      if (!isText(head) || !isText(base) || !isText(title) || !branches.has(head)) return invalid('head')
      const isOpen = pulls.some((one) => one.head === head && threads.get(one.number)?.state === 'open')
      if (isOpen) return invalid('A pull request already exists')
      const made = open({ isPull: true, title, body: String(text), author: by })
      pulls.push({ head, base, title, body: String(text), number: made.number })
      return { status: 201, data: showPull(made) }
    },
  ],
  [
    'GET',
    `${REPO}/git/ref/heads(?:/|%2F)(.+)`,
    ({ branches }, { params }) => {
      const name = decodeURIComponent(params[0]!)
      const sha = branches.get(name)
      return sha === undefined ? NOT_FOUND : { status: 200, data: showRef(name, sha) }
    },
  ],
  [
    'POST',
    `${REPO}/git/refs`,
    ({ branches }, { body }) => {
      const [, branch] = /^refs\/heads\/(.+)$/.exec(String(body.ref)) ?? []
      if (branch === undefined || !/^[0-9a-f]{40}$/.test(String(body.sha))) return invalid('ref')
      if (branches.has(branch)) return refusal(422, 'Reference already exists')
      branches.set(branch, String(body.sha))
      return { status: 201, data: showRef(branch, String(body.sha)) }
    },
  ],
  [
    'GET',
    `${REPO}/contents(?:/(.*))?`,
    ({ files, workflows }, { params }) => {
      const path = decodeURIComponent(params[0] ?? '')
      if (path === '') return { status: 200, data: files.map(showFile) }
      if (path === '.github/workflows') return { status: 200, data: workflows.map(showFile) }
      return NOT_FOUND
    },
  ],
]

function showRef(branch: string, sha: string) {
  const shown = example('post', '/repos/{owner}/{repo}/git/refs', 201)
  return { ...shown, ref: `refs/heads/${branch}`, object: { ...(shown.object as object), sha } }
}

function showFile(path: string) {
  return {
    type: 'file',
    size: 1,
    name: path.split('/').at(-1),
    path,
    sha: 'b'.repeat(40),
    ...{ url: DOCS, git_url: DOCS, html_url: DOCS, download_url: DOCS },
    _links: { self: DOCS, git: DOCS, html: DOCS },
  }
}

function paged<Item>(items: readonly Item[], query: URLSearchParams): Item[] {
  const size = Number(query.get('per_page') ?? 30)
  const page = Number(query.get('page') ?? 1)
  return items.slice((page - 1) * size, page * size)
}

export function findRoute(method: string, path: string): { route: FakeRoute; params: string[] } | undefined {
  for (const [wanted, pattern, route] of [...GIT_ROUTES, ...ROUTES]) {
    const match = wanted === method ? new RegExp(`^${pattern}$`).exec(path) : null
    if (match !== null) return { route, params: match.slice(1) }
  }
  return undefined
}
