/** What a repository of the fake holds, and how GitHub shows it. */
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

  function show(thread: FakeThread) {
    return {
      id: 5000 + thread.number,
      number: thread.number,
      title: thread.title,
      body: thread.body,
      labels: thread.labels.map((label, index) => ({ id: index + 1, name: label })),
      state: thread.state,
      state_reason: thread.state_reason,
      user: { login: thread.author, type: 'User' },
      author_association: thread.association,
      created_at: '2030-01-01T00:00:00Z',
      updated_at: '2030-01-01T00:00:00Z',
      comments: thread.comments.length,
      html_url: page(thread.number),
      ...(thread.isPull ? { pull_request: { url: `${page(thread.number)}/pull` } } : {}),
    }
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
  ) {
    return {
      id,
      body,
      user: { login: author, type: 'User' },
      author_association: association,
      created_at: createdAt,
      html_url: `${page(thread.number)}#issuecomment-${id}`,
    }
  }

  return {
    name,
    threads,
    topics: [] as string[],
    files: ['README.md', 'CONTRIBUTING.md', 'src', '.github'] as string[],
    workflows: ['.github/workflows/ci.yml'] as string[],
    branches: new Map([['main', 'a'.repeat(40)]]),
    pulls: [] as { head: string; base: string; title: string; body: string; number: number }[],
    open,
    show,
    comment,
    showComment,
    nextId: () => ++ids,
  }
}
