/**
 * Delegation among real agent programs and models, in one team that all tests share (S2.9, S2.17; issue 4, §6). It is a chain,
 * so that each program is somebody's parent and somebody's child.
 */

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { parseId } from '../../src/base/ids.ts'
import { mailOfTask } from '../../src/messages/messages.ts'
import { findTask, treeOf } from '../../src/tasks/store.ts'
import type { Task } from '../../src/tasks/task.ts'
import type { Recorded } from '../fakes/model-server/model-server.ts'
import type { ModelReply, ModelRequest } from '../fakes/model-server/play.ts'
import { OPERATOR, send } from '../harness/engine.ts'
import { byJson, byTool, byXml, createModelScript, type Saying, says } from './harness/model-script.ts'
import { openTeam, type RealTeam, type TeamSetup } from './harness/team.ts'

const CAST = {
  Lead: 'claude-code',
  Scout: 'gemini',
  Scribe: 'opencode',
  Coder: 'codex',
  Temp: 'codex',
} as const
const PROGRAMS = ['Lead', 'Scout', 'Scribe', 'Coder'] as const
const MODELS = ['Boss', 'Clerk', 'Critic', 'Aide', 'chooser', 'judge'] as const

function teamOf({ agents, modelUrl }: TeamSetup) {
  const model = (name: string) => ({ runtime: 'llm' as const, with: { model: name } })
  return {
    agents: {
      Boss: { ...model('Boss'), role: 'Answers for the team' },
      Lead: { ...agents.Lead, parent: 'Boss', role: 'Leads the work', capabilities: ['projects'] },
      Scout: { ...agents.Scout, parent: 'Lead', role: 'Looks around' },
      Clerk: { ...model('Clerk'), parent: 'Lead', role: 'Files what is found' },
      Scribe: { ...agents.Scribe, parent: 'Scout', role: 'Writes it down' },
      Coder: { ...agents.Coder, parent: 'Scribe', role: 'Programs' },
      Critic: { ...model('Critic'), parent: 'Coder', role: 'Finds what is wrong' },
      Temp: { ...agents.Temp, parent: 'Boss', on_demand: true, stop_when_idle: '2s' },
      Aide: { ...model('Aide'), parent: 'Temp' },
    },
    models: Object.fromEntries(
      MODELS.map((name) => [
        name,
        {
          provider: 'openai-compatible' as const,
          model: 'scripted',
          base_url: `${modelUrl}/v1`,
          key_env: `SCRIPTED_KEY_${name}`,
        },
      ]),
    ),
    tasks: {
      depth: 6,
      selector: 'chooser',
      judge: 'judge',
      checks: { proof: { command: 'test -f proof.txt || { echo proof.txt is missing; exit 1; }' } },
    },
  }
}

const script = createModelScript()
const { when, hold } = script
let choice: object = { ids: [], why: 'Nobody is needed.' }

/** The service's own decisions beside the agents' parts. */
function play(request: ModelRequest): ModelReply | undefined | Promise<ModelReply | undefined> {
  if (request.agent === 'chooser') return { text: JSON.stringify(choice) }
  if (request.agent !== 'judge') return script.play(request)
  const completed = !request.prompt.includes('not quite')
  return {
    text: JSON.stringify({ completed, reason: completed ? 'It is there.' : 'Not quite is not done.' }),
  }
}

let team: RealTeam

beforeAll(async () => {
  for (const name of MODELS) process.env[`SCRIPTED_KEY_${name}`] = `sk-ant-fake-${name}`
  team = await openTeam({ programs: CAST, play, config: teamOf })
  for (const name of PROGRAMS) await team.idle(name)
})
afterEach(() => {
  script.clear()
  team?.model.setPlay(play)
})
afterAll(async () => {
  await team?.close()
  for (const name of MODELS) delete process.env[`SCRIPTED_KEY_${name}`]
})

/** Delegates as the operator; resolves with the id of the task. */
async function give(to: string, task: string, more: Record<string, unknown> = {}): Promise<string> {
  const receipt = await team.order('delegate', { to, task, ...more })
  if (receipt.status !== 'ok') throw new Error(JSON.stringify(receipt))
  return receipt.details!.task_id as string
}

const taskOf = async (id: string): Promise<Task> => (await findTask(team.orchub.engine.store, id))!
const tree = (root: string) => treeOf(team.orchub.engine.store, root)
const childOf = async (root: string, agent: string) => (await tree(root)).find((task) => task.agent === agent)

async function reaches(id: string, state: Task['state']): Promise<Task> {
  return await team.until(`${id} is ${state}`, async () => {
    const task = await taskOf(id)
    return task.state === state ? task : undefined
  })
}

/** The messages of a tree as they were sent, each as `from → to kind` (S2.18). */
async function flow(root: string): Promise<string[]> {
  const mails = []
  for (const { id } of await tree(root)) {
    mails.push(...(await mailOfTask(team.orchub.engine.store, parseId('task', id)!)))
  }
  return mails
    .toSorted((one, other) => parseId('msg', one.id)! - parseId('msg', other.id)!)
    .map(({ from, to, task }) => `${from} → ${to} ${task!.kind}`)
}

const delegate = (say: Saying, to: string, task: string) => say('delegate', { to, task }, 'task')
const report = (say: Saying, result: string, status = 'completed') =>
  say('report', { status, result }, 'result')

/** Id of the message that the model just received. */
const inReplyTo = ({ prompt }: ModelRequest, kind: string): string =>
  new RegExp(`\\[ORCHUB MESSAGE (msg_\\d+)\\][^[]*Task: task_\\d+ \\(${kind}\\)`).exec(prompt)![1]!
const taskIn = ({ prompt }: ModelRequest, kind: string): string =>
  new RegExp(`Task: (task_\\d+) \\(${kind}\\)`).exec(prompt)![1]!

describe('a team of Claude Code, Gemini, opencode, Codex and models', () => {
  const CHAIN = ['Boss', 'Lead', 'Scout', 'Scribe', 'Coder', 'Critic']

  it.each<[string, (place: number) => Saying]>([
    ['by MCP', () => byTool],
    ['in XML and JSON in their text', (place) => (place % 2 === 0 ? byXml : byJson)],
  ])(
    'carries what is asked down to the last and back up %s: the whole flow of S2.9',
    async (how, sayingOf) => {
      choice = { ids: ['Wizard', 'Lead'], why: 'It is work for the lead.' }
      CHAIN.forEach((agent, place) => {
        const child = CHAIN[place + 1]
        const say = sayingOf(place)
        if (child === undefined) {
          when(agent, '(delegate)', says(report(say, `forty-two ${how}`)))
          return
        }
        when(agent, '(delegate)', says(delegate(say, child, `Find the answer, ${child}.`)))
        when(agent, '(children_ended)', ({ prompt, ...request }) => {
          const found = /completed\. (.*)/.exec(prompt)?.[1]
          return says(report(say, `${found}, says ${child}`))({ prompt, ...request })
        })
      })
      const asked = await send<{ task_id: string }>(team.orchub.engine, OPERATOR, 'ask', {
        question: `What is the answer, ${how}?`,
      })
      expect(asked).toMatchObject({ root: 'Boss', chosen: ['Lead'], by: 'model', unknown: ['Wizard'] })

      const root = await reaches(asked.task_id, 'completed')
      expect(root.result).toBe(
        `forty-two ${how}, says Critic, says Coder, says Scribe, says Scout, says Lead`,
      )
      const tasks = await tree(root.id)
      expect(tasks.map(({ agent }) => agent)).toEqual(CHAIN)
      expect(tasks).toMatchObject(
        CHAIN.map(() => ({ state: 'completed', attempt: 1, reminders: 0, claims: 1 })),
      )
      const down = CHAIN.map((agent, place) => `${CHAIN[place - 1] ?? 'operator'} → ${agent} delegate`)
      const up = CHAIN.toReversed().flatMap((agent, place) => {
        const parent = CHAIN.toReversed()[place + 1]
        if (parent === undefined) return [`${agent} → operator report`]
        return [`${agent} → ${parent} report`, `orchestrator → ${parent} children_ended`]
      })
      expect(await flow(root.id)).toEqual([...down, ...up])
    },
  )

  it('wakes a parent once, when all its children have reported (S2.17: simple delegation)', async () => {
    when(
      'Lead',
      '(delegate)',
      says(delegate(byTool, 'Scout', 'Look left.'), delegate(byTool, 'Clerk', 'Look right.')),
    )
    when('Scout', '(delegate)', says(report(byTool, 'nothing on the left')))
    when('Clerk', '(delegate)', says(report(byTool, 'gold on the right')))
    when('Lead', '(children_ended)', says(report(byTool, 'There is gold on the right.')))
    const root = await reaches(await give('Lead', 'Look around.'), 'completed')
    expect(root).toMatchObject({ result: 'There is gold on the right.', reminders: 0 })
    const wakes = (await flow(root.id)).filter((line) => line.endsWith('children_ended'))
    expect(wakes).toEqual(['orchestrator → Lead children_ended'])
    const woken = await team.model.waitFor(
      ({ agent, request }) =>
        agent === 'Lead' && request?.side === false && request.prompt.includes('gold on the right'),
    )
    expect(woken.request!.prompt).toContain('nothing on the left')
  })

  it('asks children and parents, and each answer reaches the asker (S2.17: two-way queries)', async () => {
    when(
      'Scout',
      '(delegate)',
      says(
        delegate(byTool, 'Scribe', 'Write the letter.'),
        byTool('query', { to: 'Scribe', question: 'Do you have paper?' }),
      ),
    )
    when('Scribe', 'Do you have paper?', (request) =>
      says(
        byTool('answer', { in_response_to: inReplyTo(request, 'query'), answer: 'Plenty of paper.' }),
        byTool('query', { question: 'To whom?' }),
      )(request),
    )
    when('Scout', 'To whom?', (request) =>
      says(
        byXml('answer', { in_response_to: inReplyTo(request, 'query'), answer: 'To the queen.' }, 'answer'),
      )(request),
    )
    when('Scribe', 'To the queen.', says(report(byXml, 'Dear queen')))
    when('Scout', '(children_ended)', says(report(byTool, 'The letter is written.')))
    const root = await reaches(await give('Scout', 'See to the letter.'), 'completed')
    const lines = await flow(root.id)
    for (const line of [
      'Scout → Scribe query',
      'Scribe → Scout answer',
      'Scribe → Scout query',
      'Scout → Scribe answer',
    ]) {
      expect(lines.filter((one) => one === line)).toEqual([line])
    }
    await team.received('Scout').text('Plenty of paper.')
    expect(await childOf(root.id, 'Scribe')).toMatchObject({ result: 'Dear queen', questions: [] })
  })

  it('asks a person, accepts no blank answer, and continues with the answer (S2.17: user input; S2.12)', async () => {
    const from = team.entries.length
    when(
      'Scribe',
      '(delegate)',
      says(byTool('request_user_input', { question: 'Which city do you leave from?' })),
    )
    when('Scribe', 'Los Angeles', says(report(byTool, 'A flight from LAX')))
    const id = await give('Scribe', 'Book a flight.')
    await reaches(id, 'waiting_user')
    const { request_id } = team.audited('human.asked', from)[0]!.data as { request_id: string }
    const blank = await team.order('user_response', { in_response_to: request_id, answer: '  ' })
    expect(blank).toMatchObject({ status: 'error' })
    expect(JSON.stringify(blank)).toContain('Which city do you leave from?')
    await team.order('user_response', { in_response_to: request_id, answer: 'Los Angeles' })
    expect(await reaches(id, 'completed')).toMatchObject({ result: 'A flight from LAX', reminders: 0 })
  })

  it('sends work back that a check or the judge finds incomplete, until it is done (S2.17: validation failure and retry)', async () => {
    when('Coder', '(delegate)', says(report(byTool, 'The proof is there.')))
    when('Coder', 'proof.txt is missing', (request) => ({
      ...says(report(byTool, 'The proof is there, not quite.'))(request),
      toolCalls: [{ shell: 'touch proof.txt' }],
    }))
    when('Coder', '(reminder)', says(report(byTool, 'The proof is there, not quite.')))
    when('Coder', 'Not quite is not done.', says(report(byXml, 'The proof is there and whole.')))
    const id = await give('Coder', 'Prove it.', { checks: 'proof' })
    const task = await reaches(id, 'completed')
    expect(existsSync(join(team.folder, 'work', 'Coder', 'proof.txt'))).toBe(true)
    expect(task).toMatchObject({ result: 'The proof is there and whole.', claims: 3, attempt: 1 })
    expect(task.evidence.map(({ claim, step, outcome }) => `${claim} ${step} ${outcome}`)).toEqual([
      '1 schema passed',
      '1 checks failed',
      '2 schema passed',
      '2 checks passed',
      '2 judge failed',
      '3 schema passed',
      '3 checks passed',
      '3 judge passed',
    ])
  })
})

describe('a model that', () => {
  it('forgets to report is reminded twice; then its parent gets its last text and decides (ask 5)', async () => {
    when('Scribe', '(delegate)', says(delegate(byTool, 'Coder', 'Count the files.')))
    when('Coder', '(delegate)', { text: 'There are many files here.' })
    when('Coder', '(reminder)', { text: 'As I said, many.' })
    when('Coder', '(reminder)', { text: 'I lost count at 731.' })
    when('Scribe', '(needs_help)', (request) =>
      says(byTool('answer', { in_response_to: inReplyTo(request, 'needs_help'), answer: '731 will do.' }))(
        request,
      ),
    )
    when('Coder', '731 will do.', says(report(byTool, '731')))
    when('Scribe', '(children_ended)', says(report(byTool, 'There are 731 files.')))
    const root = await reaches(await give('Scribe', 'How many files?'), 'completed')
    const lines = await flow(root.id)
    expect(lines.filter((line) => line === 'orchestrator → Coder reminder')).toHaveLength(2)
    expect(lines.filter((line) => line === 'orchestrator → Scribe needs_help')).toHaveLength(1)
    const help = await team.received('Scribe').text('(needs_help)')
    expect(help.request!.prompt).toContain('I lost count at 731.')
    expect(script.unused()).toEqual([])
  })

  it('is refused by its provider, or refuses itself, ends as needs_help and can be abandoned (ask 5)', async () => {
    const error = { status: 400, message: 'The request was refused', headers: { 'x-should-retry': 'false' } }
    when('Boss', '(delegate)', says(delegate(byTool, 'Lead', 'Do the forbidden.')))
    when('Lead', '(delegate)', { error })
    when('Lead', '(reminder)', { text: 'I am sorry, I cannot help with that.' })
    when('Lead', '(reminder)', { text: 'No. I cannot help with that.' })
    when('Boss', '(needs_help)', (request) =>
      says(
        byTool('task_action', {
          task_id: taskIn(request, 'needs_help'),
          action: 'fail',
          text: 'It refuses.',
        }),
        report(byTool, 'Nobody does it.'),
      )(request),
    )
    const root = await reaches(await give('Boss', 'See that the forbidden is done.'), 'completed')
    expect(await childOf(root.id, 'Lead')).toMatchObject({ state: 'failed', attempt: 1 })
    expect((await team.received('Boss').text('No. I cannot help with that.')).request!.prompt).toContain(
      '(needs_help)',
    )
    expect(script.unused()).toEqual([])
  })

  it('answers with garbage gets the error, and the work still ends (S2.1)', async () => {
    const from = team.entries.length
    when('Scribe', '(delegate)', {
      text: '<orc-command name="report" status="finished">Done.</orc-command>\n{"type": "REPORT", "status": \n<<<>>>',
    })
    when('Scribe', 'Status: error', { text: '<orc-command name="reprot">Done.</orc-command>' })
    when('Scribe', 'Status: error', { text: '\u0000\ufffd{{{{ %%% ]]]' })
    when('Scribe', '(reminder)', says(report(byTool, 'Done, in words.')))
    const task = await reaches(await give('Scribe', 'Say something sensible.'), 'completed')
    expect(task).toMatchObject({ result: 'Done, in words.', attempt: 1, claims: 1, reminders: 1 })
    expect(script.unused()).toEqual([])
    expect(team.audited('session.changed', from).filter(({ data }) => data!.session === 'error')).toEqual([])
  })

  it('picks unknown agents gets the list of agents, and picks again (S2.14)', async () => {
    when('Lead', '(delegate)', says(delegate(byTool, 'Wizard', 'Conjure.')))
    when('Lead', '(reminder)', says(delegate(byXml, 'Wizzard', 'Conjure.')))
    when('Lead', 'Status: error', says(delegate(byXml, 'Scout', 'Conjure.')))
    when('Scout', '(delegate)', says(delegate(byJson, 'Wizard', 'Conjure.')))
    when('Scout', 'Status: error', says(report(byXml, 'A rabbit')))
    when('Lead', '(children_ended)', says(report(byTool, 'There is a rabbit.')))
    const root = await reaches(await give('Lead', 'We need a rabbit.'), 'completed')
    expect((await tree(root.id)).map(({ agent }) => agent)).toEqual(['Lead', 'Scout'])
    const refused = await team.model.waitFor(({ agent, body }) => agent === 'Lead' && body.includes('Wizard'))
    expect(refused.body).toContain('Scout')
    expect(script.unused()).toEqual([])
  })

  it('calls one tool forever is interrupted at its timeout, and tries again: each program (C7)', async () => {
    team.model.setPlay((request) => {
      const isLooping = request.prompt.includes('For ever and ever.') && !request.side
      if (!isLooping || request.prompt.includes('attempt 2')) return play(request)
      // Slower than Gemini takes for a loop, which it would end by itself.
      return { ...says(byTool('list_agents', {}))(request), delayMs: 3_000 }
    })
    // At once, for the second attempt needs time enough too.
    const received = PROGRAMS.map(async (name) => {
      when(name, 'attempt 2 of 4', says(report(byTool, 'I have stopped.')))
      return await reaches(await give(name, 'For ever and ever.', { timeout_seconds: 10 }), 'completed')
    })
    for (const [index, task] of (await Promise.all(received)).entries()) {
      expect(task, PROGRAMS[index]).toMatchObject({ attempt: 2, result: 'I have stopped.' })
      expect(task.failures, PROGRAMS[index]).toMatchObject([{ attempt: 1, why: 'it was not done in time' }])
    }
  })
})

describe('people and programs', () => {
  it('stop all programs at once in the middle of their turns, and let them continue (issue 4, §4)', async () => {
    const { halt } = team.orchub.engine
    const calls: Recorded[] = []
    const ids: string[] = []
    for (const name of PROGRAMS) {
      hold('(delegate)', name)
      when(name, 'Title: Go on', says(report(byTool, `${name} went on`)))
      const id = await give(name, `Work long, ${name}.`)
      ids.push(id)
      calls.push(
        await team.model.waitFor(
          ({ agent, request }) =>
            agent === name && request?.side === false && request.prompt.includes(`Work long, ${name}.`),
          60_000,
        ),
      )
    }
    const { interrupts } = await halt.stop('operator', 'a look first')
    expect(interrupts.toSorted((a, b) => a.agent.localeCompare(b.agent))).toMatchObject(
      PROGRAMS.toSorted().map((agent) => ({ agent, stopped: true })),
    )
    const states = () => calls.map(({ state }) => state)
    await expect.poll(states, { timeout: 10_000 }).toEqual(PROGRAMS.map(() => 'aborted'))
    for (const name of PROGRAMS) await team.idle(name)
    expect((await Promise.all(ids.map(taskOf))).map(({ state }) => state)).toEqual(ids.map(() => 'executing'))

    await halt.go('operator')
    for (const [place, id] of ids.entries()) {
      expect(await reaches(id, 'completed')).toMatchObject({
        ...{ result: `${PROGRAMS[place]} went on`, attempt: 1, reminders: 0 },
      })
    }
  })

  it('are started for a task, stopped when idle, and started again with their conversation (S2.1)', async () => {
    expect(team.state('Temp')).toBeUndefined()
    when('Temp', '(delegate)', says(report(byTool, 'The word is swordfish.')))
    await reaches(await give('Temp', 'Make up a word.'), 'completed')
    await team.until('Temp is stopped', async () => (await team.processes('Temp')).length === 0)
    expect(team.state('Temp')).toBeUndefined()
    when('Temp', 'Which word was it?', says(report(byTool, 'Still swordfish.')))
    const again = await give('Temp', 'Which word was it?')
    expect(await reaches(again, 'completed')).toMatchObject({ result: 'Still swordfish.', attempt: 1 })
    const { body } = await team.received('Temp').text('Which word was it?')
    expect(body).toContain('Make up a word.')
    expect(body).toContain('The word is swordfish.')
  })

  it('are killed while they wait for a child, and run again when it has reported (issue 4, §6)', async () => {
    when('Temp', '(delegate)', says(delegate(byTool, 'Aide', 'Think it over.')))
    const goOn = hold('(delegate)', 'Aide')
    when('Temp', '(children_ended)', says(report(byTool, 'It is thought over.')))
    const id = await give('Temp', 'Have it thought over.')
    await reaches(id, 'waiting_child')
    await team.kill('Temp')
    await team.until('Temp is gone', () => team.state('Temp') === undefined)
    goOn({ toolCalls: [{ name: 'report', input: { status: 'completed', result: 'thought over' } }] })
    expect(await reaches(id, 'completed')).toMatchObject({ result: 'It is thought over.', attempt: 1 })
    const { body } = await team.received('Temp').text('(children_ended)')
    expect(body).toContain('Have it thought over.')
  })
})
