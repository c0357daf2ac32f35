/** Each kind of action against each fault of GitHub: retried or given up, and never performed twice (issue 6, §4). */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { actionKey, numberOf, type RepositoryAction } from '../../src/github/core/action.ts'
import type { GithubDependencies } from '../../src/github/dependencies.ts'
import { createOctokit } from '../../src/github/octokit/octokit.ts'
import { createActionQueue } from '../../src/github/perform-actions.ts'
import { changeAction, findAction, insertAction } from '../../src/github/store.ts'
import { askPeople, decideHumanRequest } from '../../src/people/people.ts'
import {
  BOT,
  type FakeCall,
  type FakeGitHub,
  type Fault,
  startGitHub,
  TOKEN,
} from '../fakes/github/github.ts'
import { createSimulatedClock } from '../fakes/simulated-clock.ts'
import { createSqliteFixture } from '../store/sqlite-fixture.ts'

const WORK = 'delivery/triage'
const ACTIONS: readonly RepositoryAction[] = [
  { kind: 'label', number: 1, label: 'bug' },
  { kind: 'comment', number: 1, body: 'Which version?' },
  { kind: 'review', number: 2, body: 'Tests are missing.' },
  { kind: 'branch', branch: 'docs/more' },
  { kind: 'pull_request', head: 'ready', title: 'More', body: 'words' },
  { kind: 'close', number: 1, duplicate_of: 2 },
]

/** Calls that change something. */
const isWrite = ({ method }: FakeCall) => method !== 'GET'

/** The call that performs the action; the comment before a close doesn't count. */
const isDoing = (action: RepositoryAction) => (call: FakeCall) =>
  action.kind === 'close' ? call.method === 'PATCH' : isWrite(call)

/** How often GitHub performed the action. */
function timesDone({ repository }: FakeGitHub, action: RepositoryAction): number {
  const [issue, pull] = [repository.threads.get(1)!, repository.threads.get(2)!]
  switch (action.kind) {
    case 'label':
      return issue.labels.filter((label) => label === action.label).length
    case 'comment':
      return issue.comments.filter(({ body }) => body.includes(action.body)).length
    case 'review':
      return pull.reviews.length
    case 'branch':
      return repository.branches.has(action.branch) ? 1 : 0
    case 'pull_request':
      return repository.pulls.length
    case 'close':
      return issue.state === 'closed' ? 1 : 0
  }
}

/**
 * The test decides when a call times out, because a busy machine would make a real timeout flaky. Calls go out one at a
 * time, so the last one is the one that waits.
 */
function takeTimeouts() {
  let last = new AbortController()
  const taken = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    last = new AbortController()
    return last.signal
  })
  onTestFinished(() => taken.mockRestore())
  return () => last.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
}

async function open(action: RepositoryAction, aheadMs = 0) {
  const fake = await startGitHub()
  const timeOut = takeTimeouts()
  fake.openIssue({ association: 'CONTRIBUTOR' })
  fake.repository.open({ isPull: true })
  fake.repository.branches.set('ready', 'b'.repeat(40))
  const clock = createSimulatedClock(Date.now() + aheadMs)
  const fixture = await createSqliteFixture()
  const store = await fixture.open({ now: clock.now })
  const github = createOctokit({
    credentials: { kind: 'token', token: () => TOKEN },
    apiUrl: fake.url,
    timeoutMs: 1000,
    userAgent: 'orchub/test',
    now: clock.now,
  })
  const deps = {
    store,
    clock,
    github,
    settings: () => ({ dryRun: false, maintainers: ['boss'] }),
    ownLogin: async () => BOT,
    redact: (text: string) => text,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    team: () => ({ config: { people: [] } }),
  } as unknown as GithubDependencies
  const key = actionKey(WORK, action)
  await store.write((tx) =>
    insertAction(tx, {
      ...{ key, work: WORK, agent: 'Triage', repository: 'octo/hello', number: numberOf(action) ?? 1 },
      ...{ action: JSON.stringify(action), confidence: 0.99, rationale: '', state: 'ready' },
      ...{ request: null, note: null },
    }),
  )
  /** A new start: only the store is left. */
  const restart = () => createActionQueue(deps)
  let acting = restart()
  onTestFinished(async () => {
    await fixture.clear()
    await fake.close()
  })
  return {
    fake,
    /** Lets one call hang. */
    hang: ({ fits, ...fault }: Omit<Fault, 'times'>) =>
      fake.fail({
        ...fault,
        hangs: true,
        fits(call) {
          const isIt = fits(call)
          // After the fake has handled the call.
          if (isIt) setImmediate(timeOut)
          return isIt
        },
      }),
    clock,
    store,
    state: async () => (await findAction(store, key))!.state,
    restart: () => {
      acting = restart()
    },
    /** Simulates an approval that was just given. */
    async approvedNow() {
      await store.write(async (tx) => {
        const { key: request } = await askPeople(tx, {
          ...{ kind: 'approval', purpose: 'command', asker: 'Triage', question: '', reason: '' },
        })
        await decideHumanRequest(tx, request, { state: 'approved', by: 'ada', comment: null })
        changeAction(tx, key, { state: 'ready', request })
      })
    },
    /** Processes due actions. Returns the time until the next one. */
    async run(): Promise<number | undefined> {
      while (await acting.next()) {}
      const due = await acting.due()
      return due === undefined ? undefined : due - clock.now()
    },
    /** Runs until no action is left. */
    async runAll(): Promise<number[]> {
      const waits: number[] = []
      for (let wait = await this.run(); wait !== undefined; wait = await this.run()) {
        waits.push(wait)
        await clock.advance(wait)
      }
      return waits
    },
  }
}

async function expectDoneOnce(team: Awaited<ReturnType<typeof open>>, action: RepositoryAction) {
  expect(await team.state()).toBe('done')
  expect(timesDone(team.fake, action)).toBe(1)
}

describe.each(ACTIONS)('$kind', (action) => {
  it('is retried after 502, and performed once (S3.20, C7)', async () => {
    const team = await open(action)
    team.fake.fail({ fits: isWrite, status: 502, times: 3 })
    expect(await team.runAll()).toEqual([1000, 2000, 4000])
    await expectDoneOnce(team, action)
  })

  it('is given up after three retries, and people are notified (S3.12)', async () => {
    const team = await open(action)
    const isIts = (call: FakeCall) => isWrite(call) && !isTold(call)
    team.fake.fail({ fits: isIts, status: 502, times: 100 })
    await team.runAll()
    expect(await team.state()).toBe('failed')
    expect(team.fake.calls.filter(isIts)).toHaveLength(4)
    expect(timesDone(team.fake, action)).toBe(0)
    expectTold(team.fake)
  })

  it('is retried when GitHub does not answer', async () => {
    const team = await open(action)
    team.hang({ fits: isWrite })
    expect(await team.runAll()).toEqual([1000])
    await expectDoneOnce(team, action)
  })

  it.each([
    ['performs it and breaks the connection', false],
    ['performs it and does not answer', true],
  ])('is performed once if GitHub %s (C25)', async (_, hangs) => {
    const team = await open(action)
    const fault = { fits: isWrite, doesIt: true }
    if (hangs) team.hang(fault)
    else team.fake.fail(fault)
    await team.runAll()
    await expectDoneOnce(team, action)
    expect(team.fake.calls.filter(isWrite).filter((call) => !isTold(call)).length).toBeLessThanOrEqual(2)
  })

  it('is performed once by a service that crashed before the response (C25)', async () => {
    const team = await open(action)
    team.hang({ fits: isDoing(action), doesIt: true })
    await team.run()
    expect(timesDone(team.fake, action)).toBe(1)
    team.restart()
    await team.runAll()
    await expectDoneOnce(team, action)
  })

  it.each([
    ['a secondary limit', 403, 'You have exceeded a secondary rate limit', { 'retry-after': '90' }, 90_000],
    ['429', 429, 'Too many requests', { 'retry-after': '30' }, 30_000],
  ] as const)(
    'waits as long as GitHub says for %s, without calls in between',
    async (_, status, message, headers, wait) => {
      const team = await open(action)
      team.fake.fail({ fits: isWrite, status, message, headers })
      expect(await team.run()).toBe(wait)
      const before = team.fake.calls.length
      await team.clock.advance(wait - 1000)
      expect(await team.run()).toBe(1000)
      expect(team.fake.calls).toHaveLength(before)
      await team.clock.advance(1000)
      expect(await team.run()).toBeUndefined()
      await expectDoneOnce(team, action)
    },
  )

  it('waits until the primary rate limit resets', async () => {
    const team = await open(action)
    const reset = Math.ceil(team.clock.now() / 1000) + 1800
    const headers = { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(reset) }
    team.fake.fail({ fits: isWrite, status: 403, message: 'API rate limit exceeded', headers })
    expect(await team.run()).toBeGreaterThanOrEqual(1_800_000)
    await team.runAll()
    await expectDoneOnce(team, action)
  })

  it.each([
    [403, 'Resource not accessible by integration'],
    // GitHub answers this to a token with read access only.
    [404, 'Not Found'],
    [422, 'Validation Failed'],
  ])('is not retried after %i, and people are notified (S3.12)', async (status, message) => {
    const team = await open(action)
    team.fake.fail({ fits: isWrite, status, message })
    await team.runAll()
    expect(await team.state()).toBe('failed')
    expect(timesDone(team.fake, action)).toBe(0)
    expectTold(team.fake)
  })

  it('is dropped if its thread or repository is gone (404)', async () => {
    const team = await open(action)
    const { threads } = team.fake.repository
    team.fake.fail({
      fits: (call) => {
        if (isWrite(call)) threads.delete(numberOf(action) ?? 1)
        return isWrite(call)
      },
      status: 404,
      message: 'Not Found',
    })
    await team.runAll()
    expect(await team.state()).toBe('stale')
    expect(team.fake.calls.filter(isWrite)).toHaveLength(1)
  })

  it('is dropped if people paused the thread or the repository in the meantime', async () => {
    const onThread = await open(action)
    for (const thread of onThread.fake.repository.threads.values()) thread.labels = ['AI-PAUSE']
    await onThread.runAll()
    expect(await onThread.state()).toBe('stale')
    const everywhere = await open(action)
    everywhere.fake.repository.topics.push('ai-pause')
    await everywhere.runAll()
    expect(await everywhere.state()).toBe('stale')
    expect(everywhere.fake.calls.filter(isWrite)).toEqual([])
  })
})

/** The label and the comment that report a failure. */
function isTold({ path, body }: FakeCall): boolean {
  return (
    (path.endsWith('/labels') && JSON.stringify(body).includes('agent-error')) ||
    (path.endsWith('/comments') && JSON.stringify(body).includes('could not'))
  )
}

function expectTold({ repository }: FakeGitHub) {
  const threads = [...repository.threads.values()]
  const told = threads.filter(({ labels }) => labels.includes('agent-error'))
  expect(told).toHaveLength(1)
  expect(told[0]!.comments.map(({ body }) => body)).toEqual([
    expect.stringMatching(/\*\*Triage\*\* could not .*@boss/s),
  ])
}

describe('a close', () => {
  const closing: RepositoryAction = {
    kind: 'close',
    number: 1,
    duplicate_of: 2,
    reason: 'The same crash, @everyone.',
  }
  const isComment = ({ method, path }: FakeCall) => method === 'POST' && path.endsWith('/comments')

  it.each([
    ['', {}],
    [' where the answer to the comment was lost (C25)', { fits: isComment, doesIt: true }],
    [' where the answer to the closing was lost (C25)', { fits: isDoing(closing), doesIt: true }],
  ])('is explained once in a comment that names the agent and the reason%s', async (_, fault) => {
    const team = await open(closing)
    if ('fits' in fault) team.fake.fail(fault)
    await team.runAll()
    expect(await team.state()).toBe('done')
    const issue = team.fake.repository.threads.get(1)!
    expect(issue.state).toBe('closed')
    expect(issue.comments).toHaveLength(1)
    expect(issue.comments[0]!.body).toMatch(
      /^This is being closed as a duplicate of #2\.\n\nThe same crash, @\u200beveryone\.\n[\s\S]*AI agent \*\*Triage\*\*/,
    )
    const writes = team.fake.calls.filter(isWrite).map(({ method }) => method)
    expect(writes.indexOf('POST')).toBeLessThan(writes.indexOf('PATCH'))
  })

  it('is explained once even if the close itself waits for a rate limit', async () => {
    const team = await open(closing)
    const headers = { 'retry-after': '30' }
    team.fake.fail({ fits: isDoing(closing), status: 429, message: 'Too many requests', headers, times: 2 })
    expect(await team.runAll()).toEqual([30_000, 30_000])
    expect(await team.state()).toBe('done')
    expect(team.fake.repository.threads.get(1)!).toMatchObject({ state: 'closed' })
    expect(team.fake.repository.threads.get(1)!.comments).toHaveLength(1)
  })
})

describe('an empty branch', () => {
  const branch: RepositoryAction = { kind: 'branch', branch: 'docs/more' }

  it('that the service created before a crash is recognized even if its base has moved (C25)', async () => {
    const team = await open(branch)
    const { branches } = team.fake.repository
    team.hang({ fits: isWrite, doesIt: true })
    await team.run()
    expect(branches.get('docs/more')).toBe('a'.repeat(40))
    branches.set('main', 'c'.repeat(40))
    team.restart()
    await team.runAll()
    expect(await team.state()).toBe('done')
    expect(branches.get('docs/more')).toBe('a'.repeat(40))
  })

  it('whose base is missing or not visible fails with a notice (S3.12)', async () => {
    const team = await open({ ...branch, base: 'nowhere' })
    await team.runAll()
    expect(await team.state()).toBe('failed')
    expectTold(team.fake)
  })

  it('of another author that starts elsewhere is left alone', async () => {
    const team = await open(branch)
    team.fake.repository.branches.set('docs/more', 'd'.repeat(40))
    await team.runAll()
    expect(await team.state()).toBe('failed')
    expect(team.fake.repository.branches.get('docs/more')).toBe('d'.repeat(40))
  })
})

describe('a comment', () => {
  const comment: RepositoryAction = { kind: 'comment', number: 1, body: 'Which version?' }

  it("is found again if our clock is half an hour ahead of GitHub's (C25)", async () => {
    const team = await open(comment, 1800_000)
    team.fake.fail({ fits: isWrite, doesIt: true })
    await team.runAll()
    await expectDoneOnce(team, comment)
  })

  it('is retried within the hour, however long GitHub says the limit lasts', async () => {
    const team = await open(comment)
    const headers = { 'retry-after': '99999999' }
    team.fake.fail({ fits: isWrite, status: 429, message: 'Too many requests', headers })
    expect(await team.runAll()).toEqual([3600_000])
    expect(await team.state()).toBe('done')
  })
})

describe('a review', () => {
  it('of an issue is dropped without a notice', async () => {
    const team = await open({ kind: 'review', number: 1, body: 'Tests are missing.' })
    await team.runAll()
    expect(await team.state()).toBe('stale')
    expect(team.fake.calls.filter(isWrite)).toEqual([])
  })
})

describe('an action that people approved after days', () => {
  it('waits for a rate limit as long as any other action', async () => {
    const action: RepositoryAction = { kind: 'comment', number: 1, body: 'Which version?' }
    const team = await open(action)
    await team.clock.advance(60 * 3600_000)
    await team.approvedNow()
    team.fake.fail({
      ...{ fits: isWrite, status: 429, message: 'Too many requests', headers: { 'retry-after': '30' } },
    })
    expect(await team.runAll()).toEqual([30_000])
    expect(await team.state()).toBe('done')
  })
})
