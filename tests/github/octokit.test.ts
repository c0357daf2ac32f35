/** The Octokit adapter against a fake that validates each call with GitHub's OpenAPI description (issue 6, §1 and §4). */
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { createOctokit } from '../../src/github/octokit/octokit.ts'
import type { GitHub } from '../../src/github/port.ts'
import { APP, OTHER_OWNER } from '../fakes/github/app.ts'
import { BOT, type FakeCall, type FakeOptions, startGitHub, TOKEN } from '../fakes/github/github.ts'
import { GONE } from '../fakes/github/routes.ts'

const REPO = 'octo/hello'

async function open(
  options: FakeOptions = {},
  given: { key?: string; token?: string; timeoutMs?: number } = {},
) {
  const fake = await startGitHub(REPO, options)
  onTestFinished(() => fake.close())
  const github: GitHub = createOctokit({
    credentials: options.app
      ? { kind: 'app', id: APP.id, key: () => given.key ?? fake.app!.privateKey }
      : { kind: 'token', token: () => given.token ?? TOKEN },
    apiUrl: fake.url,
    timeoutMs: given.timeoutMs ?? 5000,
    userAgent: 'orchub/test',
    now: Date.now,
  })
  return { fake, github }
}

const tokensMade = (calls: readonly FakeCall[]) =>
  calls.filter(({ path }) => path.endsWith('/access_tokens')).length

afterEach(() => void vi.useRealTimers())

describe.each([
  ['a token', {}, BOT],
  ['a token of Enterprise', { prefix: '/api/v3' }, BOT],
  ['an App', { app: true }, `${APP.slug}[bot]`],
  ['an App of Enterprise', { app: true, prefix: '/api/v3' }, `${APP.slug}[bot]`],
])('with %s', (_, options: FakeOptions, login) => {
  it("every call fits GitHub's description and has its effect", async () => {
    const { fake, github } = await open(options)
    const issue = fake.openIssue({ author: 'ada', labels: ['old'] })
    const pull = fake.repository.open({ isPull: true, files: ['docs/a.md'] })
    const ok = async (answer: Promise<{ ok: boolean }>) => expect(await answer).toMatchObject({ ok: true })

    expect(await github.whoAmI()).toEqual({ ok: true, value: login })
    expect(await github.look(REPO, issue.number)).toMatchObject({ value: { author: 'ada', labels: ['old'] } })
    await ok(github.perform(REPO, { kind: 'label', number: issue.number, label: 'bug' }))
    await ok(github.perform(REPO, { kind: 'comment', number: issue.number, body: 'a mark' }))
    await ok(github.perform(REPO, { kind: 'review', number: pull.number, body: 'a mark' }))
    await ok(github.perform(REPO, { kind: 'branch', branch: 'docs/more' }))
    const request = { kind: 'pull_request' as const, head: 'docs/more', title: 'More', body: 'words' }
    await ok(github.perform(REPO, request))
    await ok(github.perform(REPO, { kind: 'close', number: issue.number, duplicate_of: pull.number }))
    expect(issue).toMatchObject({ labels: ['old', 'bug'], state: 'closed', state_reason: 'duplicate' })
    expect(fake.repository.pulls).toMatchObject([{ head: 'docs/more', base: 'main', title: 'More' }])

    for (const { kind, number } of [
      { kind: 'comment' as const, number: issue.number },
      { kind: 'review' as const, number: pull.number },
    ]) {
      const place = { repository: REPO, number, kind, since: Date.now() - 60_000 }
      expect(await github.findText(place, 'a mark', login)).toMatchObject({ ok: true, value: /^https/ })
      expect(await github.findText(place, 'a mark', 'another')).toEqual({ ok: true, value: undefined })
    }
    expect(await github.findPullRequest(REPO, 'docs/more', 'words', login)).toMatchObject({ value: /^https/ })
    expect(await github.findPullRequest(REPO, 'docs/more', 'other words', login)).toEqual({
      ok: true,
      value: undefined,
    })
    fake.repository.topics.push('ai-pause')
    expect(await github.topicsOf(REPO)).toEqual({ ok: true, value: ['ai-pause'] })
    expect(await github.filesOf(REPO, pull.number)).toEqual({ ok: true, value: ['docs/a.md'] })
    expect(await github.contributionsOf(REPO, 'ada', 99)).toEqual({ ok: true, value: 1 })
    expect(await github.filesAt(REPO, '')).toMatchObject({
      value: ['README.md', 'CONTRIBUTING.md', 'src', '.github'],
    })
    expect(await github.filesAt(REPO, '.github/workflows')).toMatchObject({
      value: ['.github/workflows/ci.yml'],
    })
    expect(await github.filesAt(REPO, 'nowhere')).toEqual({ ok: true, value: [] })
    expect(await github.accountCreated('ada', REPO)).toEqual({ ok: true, value: '2020-01-15T10:00:00Z' })
    expect(await github.accountCreated(GONE, REPO)).toEqual({ ok: true, value: undefined })
    expect(await github.commentsOf(REPO, issue.number)).toMatchObject({
      value: [{ author: login, body: 'a mark' }],
    })
    const easy = fake.openIssue({ labels: ['good first issue'] })
    expect(await github.openIssues(REPO)).toMatchObject({ value: [{ number: easy.number }] })
    expect(await github.openIssues(REPO, 'good first issue')).toMatchObject({
      value: [{ number: easy.number }],
    })
    expect(await github.openIssues(REPO, 'help wanted')).toEqual({ ok: true, value: [] })
    expect(await github.figuresOf(REPO, Date.parse('2029-12-01T00:00:00Z'))).toMatchObject({
      value: { stars: expect.any(Number), issues_opened_recently: 2, issues_closed_recently: 1 },
    })
    expect(await github.headOf(REPO, undefined)).toEqual({ ok: true, value: 'a'.repeat(40) })
  })

  it('creating a branch or pull request again returns the first one', async () => {
    const { fake, github } = await open(options)
    const request = { kind: 'pull_request' as const, head: 'b', title: 't', body: 'b' }
    const urls: unknown[] = []
    for (let count = 0; count < 2; count++) {
      expect(await github.perform(REPO, { kind: 'branch', branch: 'b' })).toMatchObject({ ok: true })
      urls.push(await github.perform(REPO, request))
    }
    expect(urls[0]).toMatchObject({ ok: true, value: expect.stringMatching(/^https/) })
    expect(urls[1]).toEqual(urls[0])
    expect(fake.repository.pulls).toHaveLength(1)
  })
})

describe("another author's", () => {
  it('pull request from the branch is not taken for ours', async () => {
    const { fake, github } = await open()
    fake.repository.branches.set('b', 'b'.repeat(40))
    const request = { kind: 'pull_request' as const, head: 'b', title: 't' }
    expect(await github.perform(REPO, { ...request, body: 'x <!-- orchub:action=1 -->' })).toMatchObject({
      ok: true,
    })
    expect(await github.perform(REPO, { ...request, body: 'y <!-- orchub:action=2 -->' })).toMatchObject({
      ok: false,
      error: { kind: 'invalid', message: 'Somebody else has already created a pull request from b' },
    })
    expect(fake.repository.pulls).toHaveLength(1)
  })

  it('branch with commits is not taken for an empty one of ours', async () => {
    const { fake, github } = await open()
    fake.repository.branches.set('b', 'b'.repeat(40))
    expect(await github.perform(REPO, { kind: 'branch', branch: 'b' })).toMatchObject({
      ok: false,
      error: { message: 'Somebody else has already created a branch b' },
    })
  })
})

describe('an issue', () => {
  it('that was moved to another repository is gone, whatever its number there', async () => {
    const { fake, github } = await open()
    const issue = fake.openIssue()
    expect(await github.look(REPO, issue.number)).toMatchObject({ ok: true })
    // GitHub redirects to the new place and answers with the issue there.
    fake.repository.shownAs = 'octo/elsewhere'
    expect(await github.look(REPO, issue.number)).toMatchObject({ ok: false, error: { kind: 'gone' } })
  })

  it.each([404, 410])('with the answer %i is gone', async (status) => {
    const { fake, github } = await open()
    fake.fail({ fits: () => true, status, message: 'This issue was deleted' })
    expect(await github.look(REPO, 1)).toMatchObject({ ok: false, error: { kind: 'gone', status } })
  })
})

describe('an App', () => {
  it('uses an installation token until it expires, then gets another', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { fake, github } = await open({ app: true })
    fake.openIssue()
    for (let count = 0; count < 3; count++) expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    expect(tokensMade(fake.calls)).toBe(1)
    vi.setSystemTime(Date.now() + 61 * 60_000)
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    expect(tokensMade(fake.calls)).toBe(2)
  })

  it('works after a reinstallation, or after its token was revoked', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { fake, github } = await open({ app: true })
    fake.openIssue()
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    vi.setSystemTime(Date.now() + 10_000)
    fake.app!.reinstall()
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    expect(tokensMade(fake.calls)).toBe(2)
  })

  it('that is not installed says so, instead of that the issue is gone', async () => {
    const { fake, github } = await open({ app: true })
    fake.fail({ fits: ({ path }) => path.endsWith('/installation'), status: 404, message: 'Not Found' })
    expect(await github.look(REPO, 1)).toMatchObject({
      error: { kind: 'unauthenticated', message: expect.stringContaining('not installed') },
    })
  })

  it('with an invalid key fails with that reason and without retries', async () => {
    const { github } = await open({ app: true }, { key: 'no key' })
    expect(await github.whoAmI()).toMatchObject({
      ok: false,
      error: {
        kind: 'unauthenticated',
        message: expect.stringContaining('Invalid GitHub credentials'),
      },
    })
  })

  it('applies the timeout to token requests too', async () => {
    const { fake, github } = await open({ app: true }, { timeoutMs: 200 })
    fake.openIssue()
    fake.fail({ fits: ({ path }) => path.endsWith('/access_tokens'), hangs: true })
    expect(await github.look(REPO, 1)).toMatchObject({ error: { kind: 'timeout' } })
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
  })

  it('lists failed deliveries of all pages, oldest first, each once', async () => {
    const { fake, github } = await open({ app: true })
    const { app } = fake
    const before = await app!.deliver('issues', '{}', 'too-old')
    Object.assign(before, { at: Date.now() - 4 * 24 * 3600_000 })
    const since = Date.now() - 3 * 24 * 3600_000
    for (let count = 0; count < 130; count++) await app!.deliver('issues', '{}', `missed-${count}`)
    for (let count = 0; count < 120; count++)
      (await app!.deliver('push', '{}', `fine-${count}`)).status = 'OK'
    // Failed first, delivered on the second attempt.
    await app!.deliver('issues', '{}', 'again')
    ;(await app!.deliver('issues', '{}', 'again', true)).status = 'OK'
    // Failed twice: the latest attempt is redelivered.
    const again = await app!.deliver('issues', '{}', 'missed-0', true)
    ;(await app!.deliver('push', '{}', 'large')).code = 413
    const found = await github.deliveries!.missed(since)
    expect(found).toMatchObject({ ok: true })
    const missed = found.ok ? found.value : []
    expect(missed.map(({ guid }) => guid)).toEqual(
      Array.from({ length: 130 }, (_, index) => `missed-${index}`),
    )
    expect(missed[0]!.id).toBe(again.id)
    expect(fake.calls.filter(({ path }) => path.endsWith('/deliveries')).length).toBe(3)
  })
})

describe('a rate limit', () => {
  const limited = { status: 429, message: 'Too many requests', headers: { 'retry-after': '60' } }
  const isLimited = { ok: false, error: { kind: 'limited' } }

  it('of an App applies to all repositories of the installation, and to no other', async () => {
    vi.useFakeTimers({ toFake: ['Date'] })
    const { fake, github } = await open({ app: true })
    fake.openIssue()
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    fake.fail({ fits: ({ path }) => path.endsWith('/issues/1'), ...limited })
    expect(await github.look(REPO, 1)).toMatchObject(isLimited)
    expect(await github.topicsOf('octo/another')).toMatchObject(isLimited)
    expect(fake.calls.filter(({ path }) => path === '/repos/octo/another')).toEqual([])
    // Another installation and the App itself have limits of their own.
    expect(await github.topicsOf(`${OTHER_OWNER}/third`)).toMatchObject({ error: { kind: 'gone' } })
    expect(await github.whoAmI()).toMatchObject({ ok: true })
    vi.setSystemTime(Date.now() + 60_001)
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
  })

  it('of the App itself does not stop an installation', async () => {
    const { fake, github } = await open({ app: true })
    fake.openIssue()
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    fake.fail({ fits: ({ path }) => path === '/app', ...limited })
    expect(await github.whoAmI()).toMatchObject(isLimited)
    expect(await github.whoAmI()).toMatchObject(isLimited)
    expect(fake.calls.filter(({ path }) => path === '/app')).toHaveLength(1)
    expect(await github.look(REPO, 1)).toMatchObject({ ok: true })
    // Only the App itself can look up the installation of another repository.
    expect(await github.topicsOf('octo/another')).toMatchObject(isLimited)
  })

  it('of a token applies to that token only', async () => {
    const given = { token: TOKEN }
    const { fake, github } = await open({}, given)
    fake.openIssue()
    fake.fail({ fits: () => true, ...limited })
    expect(await github.look(REPO, 1)).toMatchObject(isLimited)
    expect(await github.whoAmI()).toMatchObject(isLimited)
    expect(fake.calls).toHaveLength(1)
    given.token = 'another'
    expect(await github.whoAmI()).toMatchObject({ error: { kind: 'unauthenticated' } })
    expect(fake.calls).toHaveLength(2)
  })
})

describe('a token', () => {
  it('cannot list missed webhooks', async () => {
    const { github } = await open()
    expect(github.deliveries).toBeUndefined()
  })

  it('that is not set makes no calls, because GitHub answers anonymous ones too', async () => {
    const { fake, github } = await open({}, { token: '' })
    expect(await github.look(REPO, 1)).toMatchObject({ error: { kind: 'unauthenticated' } })
    expect(fake.calls).toEqual([])
  })
})
