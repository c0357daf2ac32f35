import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished, vi } from 'vitest'
import type { AuditEntry } from '../../src/audit/entry.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { type Orchub, startOrchub } from '../../src/main.ts'
import { APP } from '../fakes/github/app.ts'
import { type FakeGitHub, type FakeOptions, SECRET, startGitHub, TOKEN } from '../fakes/github/github.ts'
import type { FakeThread } from '../fakes/github/repository.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'

/** The report of each agent on its task; a function gets the whole model request. */
export type Answers = Record<string, object | string | ((request: ModelRequest) => object | string)>

export type GithubTeam = Awaited<ReturnType<typeof openGithubTeam>>

/** A report with one proposal. */
export const proposing = (action_type: string, details: object = {}, confidence = 0.99) => ({
  status: 'success',
  confidence_score: confidence,
  actions_taken: [{ action_type, details, confidence }],
  rationale: 'It should be so.',
})

export const commenting = (body: string, confidence?: number) =>
  proposing('comment_posted', { body }, confidence)

export const bug = (confidence: number) => ({
  ...proposing('label_applied', { label: 'bug' }, confidence),
  rationale: 'It crashes, and it should not.',
})

/** A thread whose author is not new. */
export const OLD = { association: 'CONTRIBUTOR' }

export const NOTHING = {
  status: 'success',
  confidence_score: 0.99,
  actions_taken: [],
  rationale: 'Nothing to do.',
}

/** The tasks in the messages of a turn. */
function tasksIn(text: string): { task: string; userText: string }[] {
  return text.split('[END ORCHUB MESSAGE').flatMap((userText) => {
    const [, task] = /^Task: (task_\d+) \((?:delegate|follow_up)\)$/m.exec(userText) ?? []
    return task === undefined ? [] : [{ task, userText }]
  })
}

/** The real service with llm agents, a scripted model server and a fake GitHub. */
export async function openGithubTeam(
  answers: Answers,
  github: Partial<NonNullable<ConfigInput['github']>> = {},
  more: Partial<ConfigInput> = {},
  options: FakeOptions = {},
) {
  const fake: FakeGitHub = await startGitHub('octo/hello', options)
  const prompts: ModelRequest[] = []
  const server = await startModelServer({
    play: (request): ModelReply => {
      const speaker = /^You are (\w+),/.exec(request.system)?.[1] ?? ''
      // A busy agent gets several tasks in one turn, and reports on each.
      const asked = request.toolResults.length > 0 ? [] : tasksIn(request.userText)
      const toolCalls = asked.map(({ task, userText }) => {
        const one = { ...request, userText }
        prompts.push(one)
        const answer = answers[speaker] ?? NOTHING
        const result = typeof answer === 'function' ? answer(one) : answer
        const text = typeof result === 'string' ? result : JSON.stringify(result)
        return { name: 'report', input: { status: 'completed', in_response_to: task, result: text } }
      })
      return toolCalls.length === 0 ? { text: 'Done.' } : { toolCalls }
    },
  })
  vi.stubEnv('FAKE_GITHUB_SECRET', SECRET)
  vi.stubEnv('FAKE_GITHUB_TOKEN', TOKEN)
  vi.stubEnv('FAKE_GITHUB_KEY', fake.app?.privateKey)
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
        ...(fake.app === undefined
          ? { token_env: 'FAKE_GITHUB_TOKEN' }
          : { app: { id: APP.id, key_env: 'FAKE_GITHUB_KEY' } }),
        api_url: fake.url,
        ...github,
      },
      ...more,
    },
    { file: join(folder, 'orc.yaml'), env: {} },
  )
  let orchub!: Orchub
  const entries: AuditEntry[] = []
  const logged: string[] = []
  const noting = (level: string) => (about: object, message: string) => {
    // JSON.stringify shows nothing of an Error.
    const shown = JSON.stringify(about, (_, value) => (value instanceof Error ? value.stack : value))
    logged.push(`${level} ${message} ${shown}`)
  }
  const log = { debug: noting('debug'), info: noting('info'), warn: noting('warn'), error: noting('error') }
  const start = async () => {
    const port = orchub === undefined ? 0 : Number(new URL(orchub.url).port)
    // On the same port: GitHub may redeliver as soon as the service is up.
    fake.hookTo(orchub && `${orchub.url}/github/webhooks`)
    orchub = await startOrchub({ config, port, log })
    orchub.engine.store.onCommit((committed) => void entries.push(...committed))
    fake.hookTo(`${orchub.url}/github/webhooks`)
  }
  await start()
  onTestFinished(async () => {
    vi.unstubAllEnvs()
    await orchub.close()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
    await fake.close()
  })

  const hookUrl = () => `${orchub.url}/github/webhooks`
  const payloadOf = (thread: FakeThread, action: string) => ({
    action,
    ...(thread.isPull
      ? { pull_request: fake.repository.showPull(thread) }
      : { issue: fake.repository.show(thread) }),
    sender: { login: thread.author, type: 'User' },
  })
  return {
    fake,
    prompts,
    entries,
    /** Lines of the service's log. */
    logged,
    engine: () => orchub.engine,
    hookUrl,
    /** Stops the service and starts it again. */
    async restart(meanwhile?: () => Promise<unknown>) {
      await orchub.close()
      fake.hookTo(undefined)
      await meanwhile?.()
      await start()
    },
    payloadOf,
    /** Calls the API with that token, by default as the operator; with a body, by POST. */
    async call(path: string, { token, body }: { token?: string; body?: object } = {}) {
      const bearer = token ?? (await orchub.engine.tokens.mint(null)).token
      const answer = await fetch(new URL(path, orchub.url), {
        headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
        ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
      })
      const text = await answer.text()
      return { status: answer.status, text, json: <Json>() => JSON.parse(text) as Json }
    },
    /** Makes the timers of that kind due now. */
    async ring(kind: string) {
      const { store, timers, clock } = orchub.engine
      await store.write((tx) => tx.run('UPDATE timers SET due_at = ? WHERE kind = ?', [clock.now(), kind]))
      timers.setFor(clock.now())
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
    /** Sends a review, or with `line` a comment on a line of the pull request. */
    async reviewed(
      pull: FakeThread,
      author: string,
      body: string | null,
      association = 'NONE',
      { action = 'submitted', line = false } = {},
    ) {
      const { repository } = fake
      const made = { id: repository.nextId(), body: body ?? '', author, createdAt: new Date().toISOString() }
      const shown = { ...repository.showReview(pull, made), body, author_association: association }
      return await fake.send(hookUrl(), line ? 'pull_request_review_comment' : 'pull_request_review', {
        action: line ? 'created' : action,
        pull_request: repository.showPull(pull),
        [line ? 'comment' : 'review']: shown,
        sender: { login: author, type: author.endsWith('[bot]') ? 'Bot' : 'User' },
      })
    },
    lines: () =>
      entries.filter((entry) => entry.class === 'public').map(({ type, text }) => `${type}: ${text}`),
    until: (check: () => void | Promise<void>) => vi.waitFor(check, { timeout: 15_000, interval: 20 }),
    /** Waits until no event, work or action is pending. */
    async settled(timeout = 15_000) {
      const { store } = orchub.engine
      await vi.waitFor(
        async () => {
          const [row] = await store.all<{ open: number }>(
            `SELECT (SELECT COUNT(*) FROM github_deliveries WHERE state = 'waiting')
              + (SELECT COUNT(*) FROM github_work WHERE ended_at IS NULL)
              + (SELECT COUNT(*) FROM github_actions WHERE state IN ('ready', 'acting')) AS open`,
          )
          if (row!.open !== 0) throw new Error(`${row!.open} are open`)
        },
        { timeout, interval: 30 },
      )
    },
  }
}
