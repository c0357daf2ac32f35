/** Kills the real service with SIGKILL while it works for GitHub, and starts it again (issue 6, §4). */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createDaemon } from '../fakes/daemon.ts'
import { type FakeCall, type FakeGitHub, SECRET, startGitHub, TOKEN } from '../fakes/github/github.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'

const LABEL = { action_type: 'label_applied', details: { label: 'bug' } }
const COMMENT = { action_type: 'comment_posted', details: { body: 'Which version is it?' } }

async function open(actions: readonly object[] = [LABEL, COMMENT]) {
  const fake = await startGitHub()
  const answer = JSON.stringify({
    status: 'success',
    confidence_score: 0.99,
    actions_taken: actions,
    rationale: 'It crashes.',
  })
  let onModelCall: (() => void) | undefined
  const model = await startModelServer({
    play: ({ toolResults, userText }) => {
      onModelCall?.()
      if (toolResults.length > 0 || !userText.includes('(delegate)')) return { text: 'Done.' }
      return { toolCalls: [{ name: 'report', input: { status: 'completed', result: answer } }] }
    },
  })
  const daemon = await createDaemon(
    `
agents: { Triage: { runtime: llm, with: { model: local } } }
models: { local: { provider: openai-compatible, model: llama-3, base_url: "${model.url}/v1" } }
github:
  secret_env: FAKE_GITHUB_SECRET
  token_env: FAKE_GITHUB_TOKEN
  api_url: "${fake.url}"
  team: { lifecycle: Triage }
  actions: { pull_request: { mode: autonomous }, close: { mode: autonomous } }
`,
    { env: { FAKE_GITHUB_SECRET: SECRET, FAKE_GITHUB_TOKEN: TOKEN } },
  )
  onTestFinished(async () => {
    await daemon.close()
    await model.close()
    await fake.close()
  })
  await daemon.start()
  const issue = fake.openIssue({ association: 'CONTRIBUTOR' })
  const send = () =>
    fake.send(
      `${daemon.url}/github/webhooks`,
      'issues',
      { action: 'opened', issue: fake.repository.show(issue), sender: { login: 'x', type: 'User' } },
      { delivery: 'the-one' },
    )
  return {
    fake,
    daemon,
    issue,
    send,
    /** For actions on a pull request. */
    async sendPull() {
      const pull = fake.repository.threads.get(2)!
      const payload = { action: 'opened', pull_request: fake.repository.showPull(pull) }
      await fake.send(`${daemon.url}/github/webhooks`, 'pull_request', { ...payload, sender: { login: 'x' } })
    },
    atModelCall: (act: () => void) => {
      onModelCall = act
    },
    async crash() {
      await daemon.kill()
      await daemon.start()
    },
    async done() {
      await vi.waitFor(
        () => {
          expect(issue.labels).toEqual(['bug'])
          expect(issue.comments).toHaveLength(1)
        },
        { timeout: 30_000, interval: 50 },
      )
      // A duplicate would show by now: the service asks GitHub again within seconds.
      await new Promise((resolve) => setTimeout(resolve, 1500))
      expect(issue.comments).toHaveLength(1)
      expect(fake.writes().filter(({ path }) => path.endsWith('/labels')).length).toBeLessThanOrEqual(1)
    },
  }
}

interface Kind {
  kind: string
  action: object
  /** How often the action was performed. */
  done(fake: FakeGitHub): number
  /** The call that GitHub performs and never answers; by default the first that writes. */
  isTheAct?(call: FakeCall): boolean
  /** Methods of the other calls that wrote, each once. */
  after?: readonly string[]
}

const isWrite = ({ method }: FakeCall) => method !== 'GET'
const threadOf = ({ repository }: FakeGitHub, number: number) => repository.threads.get(number)!

const KINDS: readonly Kind[] = [
  { kind: 'a label', action: LABEL, done: (fake) => threadOf(fake, 1).labels.length },
  { kind: 'a comment', action: COMMENT, done: (fake) => threadOf(fake, 1).comments.length },
  {
    kind: 'a review',
    action: { action_type: 'review_posted', details: { body: 'Tests are missing.' } },
    done: (fake) => threadOf(fake, 2).reviews.length,
  },
  {
    kind: 'a branch',
    action: { action_type: 'branch_created', details: { branch: 'docs/more' } },
    done: ({ repository }) => (repository.branches.has('docs/more') ? 1 : 0),
  },
  {
    kind: 'a pull request',
    action: { action_type: 'pr_created', details: { head: 'ready', title: 'More', body: 'words' } },
    done: ({ repository }) => repository.pulls.length,
  },
  {
    // Closing first adds a comment: two calls, each of which may be the last before the kill.
    kind: 'the comment of a close',
    action: { action_type: 'close_issue', details: { duplicate_of: 2 } },
    done: (fake) => threadOf(fake, 1).comments.length,
    after: ['PATCH'],
  },
  {
    kind: 'closing',
    action: { action_type: 'close_issue', details: { duplicate_of: 2 } },
    done: (fake) => (threadOf(fake, 1).state === 'closed' ? 1 : 0),
    isTheAct: ({ method }) => method === 'PATCH',
    after: ['POST'],
  },
]

describe('a service that is killed', () => {
  it('right after it accepted a webhook processes it after the restart (C25)', async () => {
    const team = await open()
    expect((await team.send()).status).toBe(202)
    await team.crash()
    await team.done()
    expect((await team.send()).json).toMatchObject({ status: 'known' })
  })

  it('while the model thinks gets its answer after the restart, and acts once', async () => {
    const team = await open()
    const asked = new Promise<void>((resolve) => team.atModelCall(resolve))
    await team.send()
    await asked
    await team.crash()
    await team.done()
  })

  it.each(KINDS)('between $kind and its record performs it once (C25)', async (one) => {
    const { kind, action, done, isTheAct = isWrite, after = [] } = one
    const team = await open([action])
    team.fake.repository.branches.set('ready', 'b'.repeat(40))
    team.fake.repository.open({ number: 2, isPull: true })
    team.fake.fail({ fits: isTheAct, doesIt: true, hangs: true })
    await (kind === 'a review' ? team.sendPull() : team.send())
    const isDone = () => expect(done(team.fake)).toBe(1)
    await vi.waitFor(isDone, { timeout: 20_000 })
    await team.crash()
    const audit = () => team.daemon.call('GET', '/api/v1/audit?class=public', team.daemon.operatorToken())
    await vi.waitFor(async () => expect(JSON.stringify(await audit())).toContain('Done: '), {
      timeout: 30_000,
    })
    // A duplicate would show by now: the service asks GitHub again within seconds.
    await new Promise((resolve) => setTimeout(resolve, 1500))
    isDone()
    const asked = team.fake.calls.filter(
      ({ method, status }) => method !== 'GET' && status > 0 && status < 300,
    )
    expect(asked.map(({ method }) => method)).toEqual(after)
  })
})
