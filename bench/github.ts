/** Measures how fast the service accepts GitHub webhooks, and whether it stays fast while the team works. */
import { createRequire } from 'node:module'
import { createDaemon, type Daemon } from '../tests/fakes/daemon.ts'
import { type FakeGitHub, SECRET, startGitHub, TOKEN } from '../tests/fakes/github/github.ts'
import { startModelServer } from '../tests/fakes/model-server/model-server.ts'
import { load, perSecond } from './load.ts'
import { type Figure, median } from './report.ts'

export interface GithubSize {
  /** Webhooks and baseline requests per round. */
  count: number
  rounds: number
  /** Events that the team works on while others arrive. */
  working: number
}

const FULL: GithubSize = { count: 2000, rounds: 5, working: 1000 }
const WEBHOOKS = '/github/webhooks'
const REPORT = JSON.stringify({
  status: 'success',
  confidence_score: 0.99,
  actions_taken: [{ action_type: 'label_applied', details: { label: 'bug' } }],
  rationale: 'It crashes.',
})

/** A payload that GitHub publishes, about 10 KB, for an issue that the fake knows. */
function opened(fake: FakeGitHub): Record<string, unknown> {
  const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as {
    name: string
    examples: { action?: string; issue?: object; repository?: object }[]
  }[]
  const example = examples
    .find(({ name }) => name === 'issues')!
    .examples.find(({ action }) => action === 'opened')!
  return {
    ...example,
    issue: { ...example.issue, number: fake.openIssue().number, author_association: 'CONTRIBUTOR' },
    repository: { ...example.repository, full_name: fake.name },
  }
}

async function withService<Value>(
  perMinute: number,
  act: (daemon: Daemon, fake: FakeGitHub) => Promise<Value>,
): Promise<Value> {
  const fake = await startGitHub()
  const model = await startModelServer({
    play: ({ toolResults, userText }) => {
      const tasks = [...userText.matchAll(/^Task: (task_\d+) \(delegate\)$/gm)].map(([, task]) => task)
      if (toolResults.length > 0 || tasks.length === 0) return { text: 'Done.' }
      const report = { status: 'completed', result: REPORT }
      return {
        toolCalls: tasks.map((task) => ({ name: 'report', input: { ...report, in_response_to: task } })),
      }
    },
  })
  const daemon = await createDaemon(
    `
agents: { Triage: { runtime: llm, with: { model: local } } }
models: { local: { provider: openai-compatible, model: llama-3, base_url: "${model.url}/v1" } }
limits: { rate: off }
github: { secret_env: BENCH_SECRET, token_env: BENCH_TOKEN, api_url: "${fake.url}", events_per_minute: ${perMinute} }
`,
    { env: { BENCH_SECRET: SECRET, BENCH_TOKEN: TOKEN } },
  )
  try {
    await daemon.start()
    return await act(daemon, fake)
  } finally {
    await daemon.close()
    await model.close()
    await fake.close()
  }
}

export async function runGithubBench(size = FULL): Promise<Figure[]> {
  return [await compareWithNone(size), await askWhileWorking(size)]
}

/** The baseline passes the same server and token check, with a body of two bytes. */
async function compareWithNone({ count, rounds }: GithubSize): Promise<Figure> {
  return await withService(100, async (daemon, fake) => {
    const common = {
      port: Number(new URL(daemon.url).port),
      token: daemon.operatorToken(),
      outstanding: 100,
      batch: 1,
      count,
    }
    const none = { ...common, path: '/api/v1/commands', batch: 0 }
    const signed = {
      ...common,
      path: WEBHOOKS,
      payload: opened(fake),
      webhook: { event: 'issues', secret: SECRET },
    }
    const rates = { none: [] as number[], webhooks: [] as number[] }
    await load({ ...none, run: 'warm-up' })
    await load({ ...signed, run: 'warm-up' })
    // Alternate, so that other load on the machine affects both.
    for (let round = 0; round < rounds; round++) {
      rates.none.push((await load({ ...none, run: `e${round}` })).rate)
      rates.webhooks.push((await load({ ...signed, run: `w${round}` })).rate)
    }
    const [floorRate, webhooks] = [median(rates.none), median(rates.webhooks)]
    return {
      name: 'webhooks proven, stored and answered, 100 outstanding',
      baseline: 'an empty array of commands, same server',
      ratio: webhooks / floorRate,
      target: { atLeast: 0.3 },
      note: `${perSecond(webhooks)}, ${perSecond(floorRate)}`,
    }
  })
}

/** Sends webhooks one after another while the team works on earlier events, with calls to GitHub and the model. */
async function askWhileWorking({ working }: GithubSize): Promise<Figure> {
  return await withService(100_000, async (daemon, fake) => {
    const common = {
      port: Number(new URL(daemon.url).port),
      path: WEBHOOKS,
      token: daemon.operatorToken(),
      batch: 1,
      payload: opened(fake),
      webhook: { event: 'issues', secret: SECRET },
    }
    await load({ ...common, count: working, outstanding: 50, run: 'working' })
    const before = fake.calls.length
    const { p50, p99 } = await load({ ...common, count: 500, outstanding: 1, run: 'meanwhile' })
    const asked = fake.calls.length - before
    if (asked === 0) throw new Error('nothing was worked on meanwhile')
    return {
      name: `answer to a webhook while ${working} events are worked on, p99`,
      baseline: 'p50 of the same',
      ratio: p99 / p50,
      target: { atMost: 20 },
      note: `${p99.toFixed(1)} ms, ${p50.toFixed(1)} ms; ${asked} calls to GitHub meanwhile`,
    }
  })
}
