/** Delegation among agents that are models, in the whole service, against a scripted model server (issue 4, §6). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { spentOnTask } from '../../src/agents/store.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { type Orchub, startOrchub } from '../../src/main.ts'
import { readHumanRequests } from '../../src/people/people.ts'
import { findTask } from '../../src/tasks/store.ts'
import type { Task } from '../../src/tasks/task.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'

/** Script of each agent's model; the judge is called without an agent's prompt. */
type Roles = Record<string, (request: ModelRequest) => ModelReply>

const tool = (name: string, input: object): ModelReply => ({ toolCalls: [{ name, input }] })
const report = (result: string, status = 'completed') => tool('report', { status, result })
const DONE: ModelReply = { text: 'Done.' }

/** A lead that gives everything to the coder, passes its result on, and gives up where help is needed. */
const lead = ({ userText, toolResults }: ModelRequest): ModelReply => {
  if (toolResults.length > 0) return DONE
  const inNeed = /Task: (task_\d+) \(needs_help\)/.exec(userText)?.[1]
  if (inNeed !== undefined)
    return tool('task_action', { task_id: inNeed, action: 'fail', text: 'never mind' })
  if (userText.includes('(children_ended)')) {
    const words = /completed\. (.*)/.exec(userText)?.[1]
    return words === undefined ? report('Nothing came of it.') : report(`The coder says: ${words}`)
  }
  if (userText.includes('(delegate)')) return tool('delegate', { to: 'Coder', task: 'Add 15 and 27.' })
  return DONE
}

async function openTeam(roles: Roles, more: Partial<ConfigInput> = {}) {
  const server = await startModelServer({
    play: (request) => {
      const speaker = /^You are (\w+),/.exec(request.system)?.[1] ?? 'judge'
      return roles[speaker]?.(request) ?? { text: 'I have nothing to say.' }
    },
  })
  const folder = mkdtempSync(join(tmpdir(), 'orc-llm-tasks-'))
  const model = { runtime: 'llm' as const, with: { model: 'local', max_steps: 3 } }
  const config = defineConfig(
    {
      agents: { Lead: model, Coder: { ...model, parent: 'Lead' }, Critic: model },
      models: { local: { provider: 'openai-compatible', model: 'llama-3', base_url: `${server.url}/v1` } },
      prices: { llama: { input: 1, output: 1 } },
      limits: { rate: 'off' },
      ...more,
    },
    { file: join(folder, 'orc.yaml'), env: {} },
  )
  const orchub: Orchub = await startOrchub({ config, port: 0 })
  onTestFinished(async () => {
    await orchub.close()
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const engine = orchub.engine
  return {
    server,
    engine,
    task: async (id: string) => (await findTask(engine.store, id))!,
    order: (type: string, fields: Record<string, unknown>) =>
      engine.handle({ kind: 'operator' }, { type, fields }),
    async reaches(id: string, state: Task['state']) {
      await vi.waitFor(async () => expect((await findTask(engine.store, id))?.state).toBe(state), 20_000)
      return (await findTask(engine.store, id))!
    },
  }
}

async function begin(roles: Roles, more: Partial<ConfigInput> = {}) {
  const team = await openTeam({ Lead: lead, ...roles }, more)
  await team.order('delegate', { to: 'Lead', task: 'What do 15 and 27 make?' })
  return team
}

describe('a team of models', () => {
  it('delegates, asks both ways and a person, is judged, and reports: the whole flow of S2.9', async () => {
    const team = await begin(
      {
        Lead: (request) => {
          const question = /Reply with: answer in_response_to="(msg_\d+)"/.exec(request.userText)?.[1]
          if (question !== undefined && request.userText.includes('(query)')) {
            return tool('answer', { in_response_to: question, answer: 'As a number.' })
          }
          return lead(request)
        },
        Coder: ({ userText, toolResults }) => {
          if (toolResults.length > 0) return DONE
          if (userText.includes('(delegate)')) return tool('query', { question: 'As a number or in words?' })
          if (userText.includes('As a number.'))
            return tool('request_user_input', { question: 'Which base?' })
          return userText.includes('Ten.') ? report('42') : DONE
        },
        judge: ({ prompt }) => ({
          text: JSON.stringify({ completed: prompt.includes('42'), reason: 'It is there.' }),
        }),
      },
      { tasks: { judge: 'local' } },
    )
    await team.reaches('task_2', 'waiting_user')
    await team.order('user_response', { to: 'Coder', answer: 'Ten.' })
    const root = await team.reaches('task_1', 'completed')
    expect(root.result).toBe('The coder says: 42')
    expect(await team.task('task_2')).toMatchObject({ result: '42', attempt: 1, reminders: 0 })
    const spent = await spentOnTask(team.engine.store, 2)
    expect(spent.map(({ agent }) => agent)).toEqual(['Coder', 'orchestrator'])
    expect(spent.every(({ input, cost }) => input > 0 && cost > 0)).toBe(true)
  }, 30_000)

  it('gets an error when it picks an unknown agent, and picks another (S2.14)', async () => {
    const team = await begin({
      Lead: (request) => {
        if (request.userText.includes('(delegate)')) return tool('delegate', { to: 'Wizard', task: 'Add.' })
        const isRefused = request.toolResults.some((result) => result.includes('Wizard'))
        return isRefused ? tool('delegate', { to: 'Coder', task: 'Add.' }) : lead(request)
      },
      Coder: ({ userText }) => (userText.includes('(delegate)') ? report('42') : DONE),
    })
    expect(await team.reaches('task_1', 'completed')).toMatchObject({ result: 'The coder says: 42' })
    expect(await team.task('task_2')).toMatchObject({ agent: 'Coder' })
  }, 30_000)

  it('is reminded when it forgets to report, and then reports (ask 5)', async () => {
    const team = await begin({
      Coder: ({ userText, toolResults }) =>
        toolResults.length === 0 && userText.includes('(reminder)') ? report('42') : { text: 'It is 42!' },
    })
    await team.reaches('task_1', 'completed')
    expect(await team.task('task_2')).toMatchObject({ state: 'completed', result: '42' })
  }, 30_000)

  it.each([
    ['answers garbage', { text: 'Colourless green ideas sleep furiously.' }],
    ['garbles its commands', { text: '<orc-command name="report" status="comp' }],
    ['says what nobody understands', { text: '<orc-command name="finish_all"></orc-command>' }],
    ['refuses to answer', { error: { status: 400, message: 'I cannot help with that' } }],
    ['loops over one tool', tool('list_agents', {})],
    ['calls tools that it invented', tool('update_status', { status: 'dancing' })],
  ])(
    'that %s is reminded, then its lead decides, and every task ends',
    async (_, reply) => {
      const team = await begin({ Coder: () => reply })
      expect(await team.reaches('task_1', 'completed')).toMatchObject({ result: 'Nothing came of it.' })
      expect(await team.task('task_2')).toMatchObject({ state: 'failed', reason: 'never mind', reminders: 2 })
    },
    30_000,
  )

  it('that reports too early gets its task back from the judge with the reason (S2.11)', async () => {
    const team = await begin(
      {
        Coder: ({ userText, toolResults }) => {
          if (toolResults.length > 0) return DONE
          return userText.includes('the sum is missing') ? report('It is 42.') : report('I am on it.')
        },
        judge: ({ prompt }) => {
          const completed = prompt.includes('42')
          return {
            text: JSON.stringify({ completed, reason: completed ? 'there it is' : 'the sum is missing' }),
          }
        },
      },
      { tasks: { judge: 'local' } },
    )
    await team.reaches('task_1', 'completed')
    const { evidence, rejections } = await team.task('task_2')
    expect(rejections).toBe(1)
    const judged = evidence.filter(({ step }) => step === 'judge')
    expect(judged.map(({ claim, outcome, by }) => [claim, outcome, by])).toEqual([
      [1, 'failed', 'local'],
      [2, 'passed', 'local'],
    ])
  }, 30_000)

  it('goes to a person when the judge answers garbage of any kind', async () => {
    const team = await begin(
      {
        Lead: ({ userText }) => (userText.includes('(delegate)') ? report('42') : DONE),
        judge: () => ({ text: 'Yes!' }),
      },
      { tasks: { judge: 'local' } },
    )
    const task = await team.reaches('task_1', 'waiting_parent')
    expect(task.evidence.at(-1)).toMatchObject({
      outcome: 'unavailable',
      text: expect.stringContaining('(garbage)'),
    })
    const [request] = await readHumanRequests(team.engine.store, 'open', 10)
    expect(request).toMatchObject({ kind: 'escalation' })
  }, 30_000)

  it('reviews as an agent by a tool call, and is reminded when it only writes the verdict', async () => {
    const team = await begin(
      {
        Coder: ({ userText }) => (userText.includes('(delegate)') ? report('42') : DONE),
        Critic: ({ userText, toolResults }) => {
          const claim = Number(/claim (\d+)/i.exec(userText)?.[1])
          const task_id = /Task: (task_\d+) \(review\)/.exec(userText)?.[1]
          if (toolResults.length > 0 || !userText.includes('still needs your judgement'))
            return { text: 'Looks right to me.' }
          return tool('judge', { task_id, claim, completed: true, reason: 'I added it up.' })
        },
      },
      { tasks: { judge: 'Critic' } },
    )
    await team.reaches('task_1', 'completed')
    expect((await team.task('task_2')).evidence.at(-1)).toMatchObject({
      step: 'judge',
      outcome: 'passed',
      by: 'Critic',
      text: 'I added it up.',
    })
  }, 30_000)
})
