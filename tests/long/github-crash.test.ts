/** The real service, killed with SIGKILL while it works for GitHub, and started again (issue 6, §4). */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createDaemon } from '../fakes/daemon.ts'
import { type FakeCall, SECRET, startGitHub, TOKEN } from '../fakes/github/github.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'

const ANSWER = JSON.stringify({
  status: 'success',
  confidence_score: 0.99,
  actions_taken: [
    { action_type: 'label_applied', details: { label: 'bug' } },
    { action_type: 'comment_posted', details: { body: 'Which version is it?' } },
  ],
  rationale: 'It crashes.',
})

async function open() {
  const fake = await startGitHub()
  let onModelCall: (() => void) | undefined
  const model = await startModelServer({
    play: ({ toolResults, userText }) => {
      onModelCall?.()
      if (toolResults.length > 0 || !userText.includes('(delegate)')) return { text: 'Done.' }
      return { toolCalls: [{ name: 'report', input: { status: 'completed', result: ANSWER } }] }
    },
  })
  const daemon = await createDaemon(
    `
agents: { Triage: { runtime: llm, with: { model: local } } }
models: { local: { provider: openai-compatible, model: llama-3, base_url: "${model.url}/v1" } }
github: { secret_env: FAKE_GITHUB_SECRET, token_env: FAKE_GITHUB_TOKEN, api_url: "${fake.url}" }
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
      // Had it been done twice, it would show by now: GitHub is asked again within seconds.
      await new Promise((resolve) => setTimeout(resolve, 1500))
      expect(issue.comments).toHaveLength(1)
      expect(fake.writes().filter(({ path }) => path.endsWith('/labels')).length).toBeLessThanOrEqual(1)
    },
  }
}

const isComment = ({ method, path }: FakeCall) => method === 'POST' && path.endsWith('/comments')

describe('a service that is killed', () => {
  it('right after it took the webhook works on it when it is back (C25)', async () => {
    const team = await open()
    expect((await team.send()).status).toBe(202)
    await team.crash()
    await team.done()
    expect((await team.send()).json).toMatchObject({ status: 'known' })
  })

  it('while the model thinks has it answered, and acts once', async () => {
    const team = await open()
    const asked = new Promise<void>((resolve) => team.atModelCall(resolve))
    await team.send()
    await asked
    await team.crash()
    await team.done()
  })

  it('between the comment and its record does not comment twice (C25)', async () => {
    const team = await open()
    team.fake.fail({ fits: isComment, doesIt: true, hangs: true })
    await team.send()
    await vi.waitFor(() => expect(team.issue.comments).toHaveLength(1), { timeout: 20_000 })
    await team.crash()
    await team.done()
  })
})
