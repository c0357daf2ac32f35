import { description } from './description.ts'

/** A repository of the fake, shown as GitHub's example answers with the relevant fields changed. */
export interface FakeThread {
  number: number
  title: string
  body: string
  labels: string[]
  state: 'open' | 'closed'
  state_reason: string | null
  author: string
  association: string
  isPull: boolean
  updatedAt?: string
  comments: FakeComment[]
  reviews: FakeComment[]
  files: string[]
}

export interface FakeComment {
  id: number
  body: string
  author: string
  createdAt: string
}

export type FakeRepository = ReturnType<typeof createRepository>

type Shown = Record<string, unknown>
const REPO = '/repos/{owner}/{repo}'

function example(method: string, template: string, status: number): Shown {
  return description().example(method, template, status) as Shown
}

/** `dependabot[bot]` is a bot. */
export function showUser(login: string): Shown {
  const user = example('get', `${REPO}/issues/{issue_number}`, 200).user as Shown
  return { ...user, login, type: login.endsWith('[bot]') ? 'Bot' : 'User' }
}

export function createRepository(name: string) {
  const threads = new Map<number, FakeThread>()
  let numbers = 0
  let ids = 1000
  const page = (number: number) => `https://github.example/${name}/issues/${number}`

  function open(given: Partial<FakeThread>): FakeThread {
    const number = given.number ?? ++numbers
    numbers = Math.max(numbers, number)
    const thread: FakeThread = {
      title: 'A title',
      body: 'A body',
      labels: [],
      state: 'open',
      state_reason: null,
      author: 'newcomer',
      association: 'NONE',
      isPull: false,
      comments: [],
      reviews: [],
      files: [],
      ...given,
      number,
    }
    threads.set(number, thread)
    return thread
  }

  function common(thread: FakeThread) {
    return {
      id: 5000 + thread.number,
      number: thread.number,
      title: thread.title,
      body: thread.body,
      labels: showLabels(thread),
      state: thread.state,
      user: showUser(thread.author),
      author_association: thread.association,
      created_at: '2030-01-01T00:00:00Z',
      updated_at: thread.updatedAt ?? '2030-01-01T00:00:00Z',
      closed_at: thread.state === 'closed' ? '2030-01-02T00:00:00Z' : null,
      html_url: page(thread.number),
      repository_url: `https://api.github.example/repos/${made.shownAs}`,
    }
  }

  /** Shows a thread as an issue; every pull request is one too. */
  function show(thread: FakeThread): Shown {
    const { pull_request, ...issue } = example('get', `${REPO}/issues/{issue_number}`, 200)
    return {
      ...issue,
      ...common(thread),
      state_reason: thread.state_reason,
      comments: thread.comments.length,
      ...(thread.isPull ? { pull_request } : {}),
    }
  }

  function showPull(thread: FakeThread): Shown {
    const pull = example('post', `${REPO}/pulls`, 201)
    return { ...pull, requested_teams: [], ...common(thread), comments: thread.comments.length }
  }

  function showLabels({ labels }: FakeThread): Shown[] {
    const [label] = description().example('post', `${REPO}/issues/{issue_number}/labels`, 200) as Shown[]
    return labels.map((one, index) => ({ ...label, id: index + 1, name: one }))
  }

  function comment(thread: FakeThread, author: string, body: string): FakeComment {
    const made = { id: ++ids, body, author, createdAt: new Date().toISOString() }
    thread.comments.push(made)
    return made
  }

  function showComment(
    thread: FakeThread,
    { id, body, author, createdAt }: FakeComment,
    association = 'NONE',
  ): Shown {
    return {
      ...example('post', `${REPO}/issues/{issue_number}/comments`, 201),
      id,
      body,
      user: showUser(author),
      author_association: association,
      created_at: createdAt,
      updated_at: createdAt,
      html_url: `${page(thread.number)}#issuecomment-${id}`,
    }
  }

  function showReview(thread: FakeThread, { id, body, author, createdAt }: FakeComment): Shown {
    return {
      ...example('post', `${REPO}/pulls/{pull_number}/reviews`, 200),
      id,
      body,
      user: showUser(author),
      state: 'COMMENTED',
      submitted_at: createdAt,
      html_url: `${page(thread.number)}#pullrequestreview-${id}`,
    }
  }

  const made = {
    name,
    /** Differs from the name after a move. */
    shownAs: name,
    threads,
    topics: [] as string[],
    files: ['README.md', 'CONTRIBUTING.md', 'src', '.github'] as string[],
    workflows: ['.github/workflows/ci.yml'] as string[],
    branches: new Map([['main', 'a'.repeat(40)]]),
    pulls: [] as { head: string; base: string; title: string; body: string; number: number }[],
    open,
    show,
    showPull,
    showLabels,
    comment,
    showComment,
    showReview,
    nextId: () => ++ids,
  }
  return made
}
