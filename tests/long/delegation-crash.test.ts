/** Kills the real service with SIGKILL in each state of a three-level delegation (issue 4, §6), with models as agents. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { TaskState } from '../../src/tasks/task.ts'
import { createDaemon, type Daemon } from '../fakes/daemon.ts'
import { type ModelServer, startModelServer } from '../fakes/model-server/model-server.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'

const config = (models: string) => `
agents:
  Top: { runtime: llm, with: { model: local } }
  Middle: { parent: Top, runtime: llm, with: { model: local } }
  Bottom: { parent: Middle, runtime: llm, with: { model: local } }
models:
  local: { provider: openai-compatible, model: fake, base_url: '${models}/v1' }
rules:
  preset: mesh
  ask: [{ from: Bottom, to: Top, reason: people want to know }]
tasks:
  checks:
    built: { command: 'echo began >> checked.log; sleep 1; test ! -e broken && echo ended >> checked.log', timeout: 60s }
limits: { rate: off }
`

const tool = (name: string, input: object): ModelReply => ({ toolCalls: [{ name, input }] })
const DONE: ModelReply = { text: 'Done for now.' }

/** The behaviour of each model for each message; it acknowledges its own results. */
const ROLES: Record<string, (said: string) => ModelReply> = {
  Top(said) {
    if (said.includes('(delegate)')) return tool('delegate', { to: 'Middle', task: 'Plan the trip' })
    if (said.includes('(children_ended)'))
      return tool('report', { status: 'completed', result: 'All is planned' })
    return DONE
  },
  Middle(said) {
    const question = /Reply with: answer in_response_to="(msg_\d+)"/.exec(said)?.[1]
    if (question !== undefined)
      return tool('answer', { in_response_to: question, answer: 'Take the cheapest.' })
    if (said.includes('(delegate)'))
      return tool('delegate', { to: 'Bottom', task: 'Find a flight', checks: ['built'] })
    if (said.includes('(children_ended)')) return tool('report', { status: 'completed', result: 'Planned' })
    return DONE
  },
  Bottom(said) {
    if (said.includes('Verdict: approved')) return tool('report', { status: 'completed', result: 'Flight 7' })
    if (said.includes('LAX')) return tool('send_message', { to: 'Top', content: 'I book it now.' })
    if (said.includes('Take the cheapest.')) return tool('request_user_input', { question: 'From where?' })
    if (said.includes('(delegate)')) return tool('query', { question: 'Price or convenience?' })
    return DONE
  },
}

interface Flow {
  daemon: Daemon
  models: ModelServer
  /** Keeps that agent's model silent until `speak`. */
  silence(agent: string): void
  speak(): void
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>
  order(type: string, fields: Record<string, unknown>): Promise<void>
  states(): Promise<TaskState[]>
  /** Waits until the three tasks are in these states. */
  become(...states: TaskState[]): Promise<void>
  /** Waits until no agent but the silenced one is in the middle of a step. */
  rest(): Promise<void>
  openRequest(): Promise<string>
  decide(verdict: object): Promise<void>
}

async function openFlow(): Promise<Flow> {
  let silent: string | undefined
  let release: () => void = () => {}
  let spoken = Promise.resolve()
  const models = await startModelServer({
    async play({ system, userText, toolResults }: ModelRequest) {
      const agent = /^You are (\w+),/.exec(system)?.[1] ?? ''
      if (agent === silent) await spoken
      return toolResults.length > 0 ? DONE : (ROLES[agent]?.(userText) ?? DONE)
    },
  })
  const daemon = await createDaemon(config(models.url))
  onTestFinished(async () => {
    release()
    await daemon.close()
    await models.close()
  })
  await daemon.start()

  async function call(method: string, path: string, body?: unknown) {
    const answer = await daemon.call(method, path, daemon.operatorToken(), body)
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    return answer.body
  }
  async function states() {
    const { tasks } = (await call('GET', '/api/v1/tasks?state=all')) as { tasks: { state: TaskState }[] }
    return tasks.map(({ state }) => state)
  }
  async function openRequest() {
    return await vi.waitFor(
      async () => {
        const { requests } = (await call('GET', '/api/v1/human-requests')) as { requests: { id: string }[] }
        expect(requests).toHaveLength(1)
        return requests[0]!.id
      },
      { timeout: 20_000, interval: 50 },
    )
  }
  return {
    daemon,
    models,
    silence(agent) {
      silent = agent
      spoken = new Promise((resolve) => {
        release = resolve
      })
    },
    speak() {
      silent = undefined
      release()
    },
    call,
    async order(type, fields) {
      await call('POST', '/api/v1/commands', { type, ...fields })
    },
    states,
    async become(...wanted) {
      await vi.waitFor(async () => expect(await states()).toEqual(wanted), { timeout: 60_000, interval: 50 })
    },
    async rest() {
      await vi.waitFor(
        async () => {
          const { agents } = (await call('GET', '/api/v1/agents')) as {
            agents: { name: string; session: string }[]
          }
          const others = agents.filter(({ name }) => name !== silent)
          expect(others.every(({ session }) => session === 'idle' || session === 'paused')).toBe(true)
        },
        { timeout: 20_000, interval: 50 },
      )
    },
    openRequest,
    async decide(verdict) {
      await call('POST', `/api/v1/human-requests/${await openRequest()}/verdict`, verdict)
    },
  }
}

/** States in which the service is killed. */
interface Station {
  name: string
  reach(flow: Flow): Promise<void>
  leave(flow: Flow): Promise<void>
}

/** The steps of the whole flow. */
const STATIONS: readonly Station[] = [
  {
    name: 'pending',
    reach: (flow) => flow.become('waiting_child', 'waiting_child', 'pending'),
    async leave(flow) {
      flow.silence('Bottom')
      await flow.order('request_action', { action: 'resume_session', target: 'Bottom' })
    },
  },
  {
    name: 'executing, and waiting_child above it',
    reach: (flow) => flow.become('waiting_child', 'waiting_child', 'executing'),
    async leave(flow) {
      flow.speak()
      flow.silence('Middle')
    },
  },
  {
    name: 'waiting_parent',
    reach: (flow) => flow.become('waiting_child', 'executing', 'waiting_parent'),
    leave: async (flow) => flow.speak(),
  },
  {
    name: 'waiting_user',
    async reach(flow) {
      await flow.become('waiting_child', 'waiting_child', 'waiting_user')
    },
    leave: (flow) => flow.decide({ decision: 'answer', comment: 'LAX' }),
  },
  {
    name: 'waiting_approval',
    reach: (flow) => flow.become('waiting_child', 'waiting_child', 'waiting_approval'),
    async leave(flow) {
      await flow.order('task_action', { task_id: 'task_3', action: 'hold', text: 'wait a moment' })
    },
  },
  {
    name: 'blocked',
    reach: (flow) => flow.become('waiting_child', 'waiting_child', 'blocked'),
    async leave(flow) {
      await flow.order('task_action', { task_id: 'task_3', action: 'release' })
      await flow.decide({ decision: 'approve' })
    },
  },
  {
    name: 'under validation',
    async reach({ daemon }) {
      const log = join(daemon.folder, 'checked.log')
      await vi.waitFor(() => expect(existsSync(log)).toBe(true), { timeout: 30_000, interval: 20 })
    },
    leave: async () => {},
  },
  {
    name: 'completed',
    reach: (flow) => flow.become('completed', 'completed', 'completed'),
    leave: async () => {},
  },
]

/** A paused agent's runtime has the task after the acknowledgement timeout: it waits there for its worker. */
const ANALYZING: Station = {
  name: 'analyzing',
  reach: (flow) => flow.become('waiting_child', 'waiting_child', 'analyzing'),
  leave: STATIONS[0]!.leave,
}

/** Checks by the audit and from outside that everything happened once. */
async function expectOnce(flow: Flow) {
  const { tasks } = (await flow.call('GET', '/api/v1/tasks?state=all')) as { tasks: object[] }
  expect(tasks).toMatchObject([
    { id: 'task_1', state: 'completed', attempt: 1, result: 'All is planned' },
    { id: 'task_2', state: 'completed', attempt: 1, result: 'Planned' },
    { id: 'task_3', state: 'completed', attempt: 1, result: 'Flight 7' },
  ])
  const kinds: string[] = []
  for (const id of ['task_1', 'task_2', 'task_3']) {
    const { messages } = (await flow.call('GET', `/api/v1/tasks/${id}`)) as { messages: { kind: string }[] }
    kinds.push(...messages.map(({ kind }) => `${id} ${kind}`))
  }
  // Three answers (parent, person, verdict), and no reminder, since no agent forgot anything.
  expect(kinds).toEqual([
    ...['task_1 delegate', 'task_1 children_ended', 'task_1 report'],
    ...['task_2 delegate', 'task_2 children_ended', 'task_2 report'],
    ...[
      'task_3 delegate',
      'task_3 query',
      'task_3 answer',
      'task_3 answer',
      'task_3 answer',
      'task_3 report',
    ],
  ])
  const { requests } = (await flow.call('GET', '/api/v1/human-requests?state=all')) as { requests: object[] }
  expect(requests).toMatchObject([
    { kind: 'input', state: 'answered' },
    { kind: 'approval', state: 'approved' },
  ])
  const mail = (await flow.daemon.mailbox('Top')).filter(({ content }) => content === 'I book it now.')
  expect(mail).toHaveLength(1)
  const { evidence } = (await flow.call('GET', '/api/v1/tasks/task_3')) as { evidence: { step: string }[] }
  expect(evidence.filter(({ step }) => step === 'checks')).toHaveLength(1)
  expect(await flow.call('GET', '/api/v1/audit/verify')).toMatchObject({ ok: true })
}

/** Checks that no model got the same question again: no agent took a step twice. */
function expectNoStepTwice({ models }: Flow) {
  const answered = models.requests.filter(({ state }) => state === 'answered').map(({ body }) => body)
  expect(new Set(answered).size).toBe(answered.length)
}

async function begin(): Promise<Flow> {
  const flow = await openFlow()
  await flow.order('request_action', { action: 'pause_session', target: 'Bottom' })
  await flow.order('delegate', { to: 'Top', task: 'A trip to Italy' })
  return flow
}

async function die({ daemon }: Flow) {
  await daemon.kill()
  await daemon.start()
}

describe('kill -9 in each state of a three-level delegation', () => {
  it.each(STATIONS.map(({ name }) => name))(
    '%s: it goes on where it was, and nothing is done twice',
    async (name) => {
      const flow = await begin()
      for (const station of STATIONS) {
        await station.reach(flow)
        if (station.name === name) {
          await flow.rest()
          const before = await flow.states()
          await die(flow)
          expect(await flow.states()).toEqual(before)
        }
        await station.leave(flow)
      }
      await expectOnce(flow)
      expectNoStepTwice(flow)
    },
  )

  it('analyzing: it continues, and nothing is done twice', async () => {
    const flow = await begin()
    for (const station of [ANALYZING, ...STATIONS.slice(1)]) {
      await station.reach(flow)
      if (station === ANALYZING) await die(flow)
      await station.reach(flow)
      await station.leave(flow)
    }
    await expectOnce(flow)
    expectNoStepTwice(flow)
  })

  it('in all of them, one after the other', async () => {
    const flow = await begin()
    for (const station of STATIONS) {
      await station.reach(flow)
      await flow.rest()
      await die(flow)
      await station.reach(flow)
      await station.leave(flow)
    }
    await expectOnce(flow)
    expectNoStepTwice(flow)
  })

  it('and at any other time: a model may be called again, but nothing is done twice', async () => {
    const flow = await begin()
    await flow.order('request_action', { action: 'resume_session', target: 'Bottom' })
    let kills = 0
    // Answers every question, like people would.
    while ((await flow.states()).some((state) => state !== 'completed')) {
      await new Promise((resolve) => setTimeout(resolve, 40 + ((kills * 137) % 400)))
      if (kills < 20) {
        kills += 1
        await die(flow)
      }
      const { requests } = (await flow.call('GET', '/api/v1/human-requests')) as {
        requests: { id: string; kind: string }[]
      }
      for (const { id, kind } of requests) {
        const verdict = kind === 'input' ? { decision: 'answer', comment: 'LAX' } : { decision: 'approve' }
        await flow.call('POST', `/api/v1/human-requests/${id}/verdict`, verdict)
      }
    }
    await expectOnce(flow)
  })
})

describe('kill -9 after another end', () => {
  it.each(['cancel', 'fail', 'skip'] as const)('by %s starts nothing again', async (action) => {
    const flow = await begin()
    await flow.become('waiting_child', 'waiting_child', 'pending')
    await flow.rest()
    const ended = { cancel: 'cancelled', fail: 'failed', skip: 'skipped' } as const
    await flow.order('task_action', { task_id: 'task_1', action, text: 'enough' })
    const after = await flow.states()
    expect(after).toEqual([ended[action], 'cancelled', 'cancelled'])
    await flow.rest()
    const calls = flow.models.requests.length
    await die(flow)
    await flow.order('request_action', { action: 'resume_session', target: 'Bottom' })
    await flow.rest()
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(await flow.states()).toEqual(after)
    expect(flow.models.requests.length).toBe(calls)
  })
})
