/** Files, commits and webhooks of the fake's repository. */
import { createHash } from 'node:crypto'
import { description } from './description.ts'
import type { FakeRepository } from './repository.ts'
import type { FakeRoute } from './routes.ts'

const REPO = '/repos/[^/]+/[^/]+'
const TEMPLATE = '/repos/{owner}/{repo}'
const DOCS = 'https://docs.github.com/rest'
const NOT_FOUND = { status: 404, data: { message: 'Not Found', documentation_url: DOCS, status: '404' } }

export interface FakeHook {
  url: string
  content_type: string
  events: string[]
  active: boolean
  code: number | null
}

/** Git data of each repository, stored beside the repository object. */
interface Held {
  /** Files of the default branch. */
  texts: Map<string, string>
  trees: Map<string, Map<string, string>>
  commits: Map<string, { message: string; tree: string; parents: string[] }>
  hooks: FakeHook[]
}

const held = new WeakMap<FakeRepository, Held>()

export function gitOf(repository: FakeRepository): Held {
  const known = held.get(repository)
  if (known !== undefined) return known
  const made: Held = { texts: new Map(), trees: new Map(), commits: new Map(), hooks: [] }
  made.trees.set('7'.repeat(40), new Map())
  made.commits.set('a'.repeat(40), { message: 'Begin', tree: '7'.repeat(40), parents: [] })
  held.set(repository, made)
  return made
}

/** Files that a branch has beyond those of the default branch. */
export function filesOnBranch(repository: FakeRepository, branch: string): Record<string, string> {
  const { commits, trees } = gitOf(repository)
  const commit = commits.get(repository.branches.get(branch) ?? '')
  return Object.fromEntries(trees.get(commit?.tree ?? '') ?? [])
}

const shaOf = (value: unknown) => createHash('sha1').update(JSON.stringify(value)).digest('hex')
const example = (method: string, path: string, status: number) =>
  description().example(method, `${TEMPLATE}${path}`, status) as Record<string, unknown>

export const GIT_ROUTES: readonly [method: string, path: string, route: FakeRoute][] = [
  [
    'GET',
    `${REPO}/contents/(.+\\.(?:md|ya?ml))`,
    (repository, { params }) => {
      const path = decodeURIComponent(params[0]!)
      const text = gitOf(repository).texts.get(path)
      if (text === undefined) return NOT_FOUND
      return {
        status: 200,
        data: {
          type: 'file',
          encoding: 'base64',
          size: text.length,
          name: path.split('/').at(-1),
          path,
          content: Buffer.from(text).toString('base64'),
          sha: 'b'.repeat(40),
          ...{ url: DOCS, git_url: DOCS, html_url: DOCS, download_url: DOCS },
          _links: { self: DOCS, git: DOCS, html: DOCS },
        },
      }
    },
  ],
  [
    'GET',
    `${REPO}/git/commits/([0-9a-f]{40})`,
    (repository, { params }) => {
      const commit = gitOf(repository).commits.get(params[0]!)
      if (commit === undefined) return NOT_FOUND
      const shown = example('get', '/git/commits/{commit_sha}', 200)
      const tree = { ...(shown.tree as object), sha: commit.tree }
      return { status: 200, data: { ...shown, sha: params[0], message: commit.message, tree } }
    },
  ],
  [
    'POST',
    `${REPO}/git/trees`,
    (repository, { body }) => {
      const { trees } = gitOf(repository)
      const base = trees.get(String(body.base_tree))
      if (base === undefined) return NOT_FOUND
      const entries = body.tree as { path: string; content: string }[]
      const tree = new Map([
        ...base,
        ...entries.map(({ path, content }): [string, string] => [path, content]),
      ])
      const sha = shaOf([...tree])
      trees.set(sha, tree)
      return { status: 201, data: { ...example('post', '/git/trees', 201), sha } }
    },
  ],
  [
    'POST',
    `${REPO}/git/commits`,
    (repository, { body }) => {
      const { trees, commits } = gitOf(repository)
      const { message, tree, parents } = body as { message: string; tree: string; parents: string[] }
      if (!trees.has(tree) || parents.some((parent) => !commits.has(parent))) return NOT_FOUND
      // The time is part of the hash, as in git.
      const sha = shaOf([message, tree, parents, commits.size])
      commits.set(sha, { message, tree, parents })
      const shown = example('post', '/git/commits', 201)
      return { status: 201, data: { ...shown, sha, message, tree: { ...(shown.tree as object), sha: tree } } }
    },
  ],
  [
    'GET',
    `${REPO}/hooks`,
    (repository) => {
      const [shown] = description().example('get', `${TEMPLATE}/hooks`, 200) as Record<string, unknown>[]
      const data = gitOf(repository).hooks.map(({ url, content_type, events, active, code }) => ({
        ...shown,
        active,
        events,
        config: { url, content_type, insecure_ssl: '0' },
        last_response: { code, status: code === null ? 'unused' : 'active', message: null },
      }))
      return { status: 200, data }
    },
  ],
]
