import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import { type ConfigInput, defineConfig } from '../../src/config.ts'
import { type Orchub, startOrchub } from '../../src/main.ts'
import type { AuditEntry } from '../../src/model/audit-entry.ts'
import { type FakeGitHub, SECRET, startGitHub, TOKEN } from '../fakes/github/github.ts'
import type { FakeThread } from '../fakes/github/repository.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'

/** What each agent answers to its task, as the result of its report; a function sees the whole request. */
export type Answers = Record<string, object | string | ((request: ModelRequest) => object | string)>

export type GithubTeam = Awaited<ReturnType<typeof openGithubTeam>>

export const bug = (confidence: number) => ({
  status: 'success',
  confidence_score: confidence,
  actions_taken: [{ action_type: 'label_applied', details: { label: 'bug' }, confidence }],
  rationale: 'It crashes, and it should not.',
})

export const NOTHING = {
  status: 'success',
  confidence_score: 0.99,
  actions_taken: [],
  rationale: 'Nothing to do.',
}

/** The whole service with agents that are models, a scripted model and a GitHub of its own: all of it real but these. */
export async function openGithubTeam(
  answers: Answers,
  github: Partial<NonNullable<ConfigInput['github']>> = {},
  more: Partial<ConfigInput> = {},
) {
  const fake: FakeGitHub = await startGitHub()
  const prompts: ModelRequest[] = []
  const server = await startModelServer({
    play: (request): ModelReply => {
      const speaker = /^You are (\w+),/.exec(request.system)?.[1] ?? ''
      if (
        request.toolResults.length > 0 ||
        (!request.userText.includes('(delegate)') && !request.userText.includes('(follow_up)'))
      ) {
        return { text: 'Done.' }
      }
      prompts.push(request)
      const answer = answers[speaker] ?? NOTHING
      const result = typeof answer === 'function' ? answer(request) : answer
      const text = typeof result === 'string' ? result : JSON.stringify(result)
      return { toolCalls: [{ name: 'report', input: { status: 'completed', result: text } }] }
    },
  })
  vi.stubEnv('FAKE_GITHUB_SECRET', SECRET)
  vi.stubEnv('FAKE_GITHUB_TOKEN', TOKEN)
  const folder = mkdtempSync(join(tmpdir(), 'orc-github-'))
  const model = { runtime: 'llm' as const, with: { model: 'local', max_steps: 3 } }
  const config = defineConfig(
    {
      agents: { Triage: model, Concierge: model, Lifecycle: model, Scribe: model, Community: model },
      models: { local: { provider: 'openai-compatible', model: 'llama-3', base_url: `${server.url}/v1` } },
      limits: { rate: 'off' },
      people: {
        ada: { github: 'ada-gh' },
        ben: { github: 'ben-gh' },
        vera: { role: 'viewer', github: 'vera-gh' },
      },
      github: {
        secret_env: 'FAKE_GITHUB_SECRET',
        token_env: 'FAKE_GITHUB_TOKEN',
        api_url: fake.url,
        ...github,
      },
      ...more,
    },
    { file: join(folder, 'orc.yaml'), env: {} },
  )
  let orchub: Orchub
  const entries: AuditEntry[] = []
  const start = async () => {
    orchub = await startOrchub({ config, port: 0 })
    orchub.switchboard.store.onCommit((committed) => void entries.push(...committed))
    fake.hookTo(`${orchub.url}/github/webhooks`)
  }
  await start()
  onTestFinished(async () => {
    vi.unstubAllEnvs()
    await orchub.close()
    await server.close()
    await fake.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const hookUrl = () => `${orchub.url}/github/webhooks`
  const payloadOf = (thread: FakeThread, action: string) => ({
    action,
    [thread.isPull ? 'pull_request' : 'issue']: fake.repository.show(thread),
    sender: { login: thread.author, type: 'User' },
  })
  return {
    fake,
    prompts,
    entries,
    board: () => orchub.switchboard,
    hookUrl,
    /** The service goes away and comes back. */
    async restart() {
      await orchub.close()
      await start()
    },
    async opened(thread: Partial<FakeThread>, options: { delivery?: string } = {}) {
      const made = fake.repository.open(thread)
      await fake.send(hookUrl(), made.isPull ? 'pull_request' : 'issues', payloadOf(made, 'opened'), options)
      return made
    },
    async commented(thread: FakeThread, author: string, body: string, association = 'NONE') {
      const made = fake.repository.comment(thread, author, body)
      return await fake.send(hookUrl(), 'issue_comment', {
        action: 'created',
        issue: fake.repository.show(thread),
        comment: fake.repository.showComment(thread, made, association),
        sender: { login: author, type: 'User' },
      })
    },
    lines: () =>
      entries.filter((entry) => entry.class === 'public').map(({ type, text }) => `${type}: ${text}`),
    until: (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 15_000, interval: 20 }),
    /** Nothing more is under way. */
    async settled() {
      const { store } = orchub.switchboard
      await vi.waitFor(
        async () => {
          const [row] = await store.all<{ open: number }>(
            `SELECT (SELECT COUNT(*) FROM github_deliveries WHERE state = 'waiting')
              + (SELECT COUNT(*) FROM github_work WHERE ended_at IS NULL)
              + (SELECT COUNT(*) FROM github_actions WHERE state IN ('ready', 'acting')) AS open`,
          )
          if (row!.open !== 0) throw new Error(`${row!.open} are open`)
        },
        { timeout: 15_000, interval: 30 },
      )
    },
  }
}
