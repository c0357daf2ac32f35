import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUILT_IN_COMMANDS, type CommandDefinition, type CommandType } from '../../../src/protocol/command.ts'
import { runOrc } from '../../cli/orc.ts'
import { openTestService, type TestService } from '../../harness/service.ts'
import { encodeCommand } from '../../protocol/encode-command.ts'

/** The example messages of the seed; only placeholders (`{...}`, `a | b`) are filled in. */
const SEED = {
  DELEGATE: `{
  "type": "DELEGATE",
  "from": "parent_agent_id",
  "to": "child_agent_id",
  "task": "Research flights from LAX to Italy",
  "context": {"budget": {"most": 900, "currency": "USD"}, "stops": [0, 1]},
  "message_id": "parent_message_id",
  "requires_response": true
}`,
  QUERY: `{
  "type": "QUERY",
  "from": "child_agent_id",
  "to": "parent_agent_id",
  "question": "Should I prioritize price or convenience?",
  "message_id": "query_message_id",
  "requires_response": true
}`,
  ANSWER: `{
  "type": "ANSWER",
  "from": "parent_agent_id",
  "to": "child_agent_id",
  "answer": "Prioritize price",
  "message_id": "uuid",
  "in_response_to": "query_message_id"
}`,
  REQUEST_USER_INPUT: `{
  "type": "REQUEST_USER_INPUT",
  "from": "child_agent_id",
  "question": "What is your departure city?",
  "context": "I need this to search for flights",
  "message_id": "request_message_id",
  "awaiting_response": true
}`,
  USER_RESPONSE: `{
  "type": "USER_RESPONSE",
  "to": "child_agent_id",
  "answer": "LAX",
  "message_id": "uuid",
  "in_response_to": "request_message_id"
}`,
  REPORT: `{
  "type": "REPORT",
  "from": "child_agent_id",
  "to": "parent_agent_id",
  "result": "Found 3 flight options...",
  "status": "completed",
  "message_id": "uuid",
  "in_response_to": "parent_message_id"
}`,
} as const
type MessageType = keyof typeof SEED
/** In the order of the flow: each message needs the ones before it. */
const TYPES = Object.keys(SEED) as MessageType[]

const SPEAKERS: Record<MessageType, 'parent' | 'child' | 'operator'> = {
  DELEGATE: 'parent',
  QUERY: 'child',
  ANSWER: 'parent',
  REQUEST_USER_INPUT: 'child',
  USER_RESPONSE: 'operator',
  REPORT: 'child',
}

let service: TestService
let tokens: Record<'parent' | 'child' | 'operator', string>
beforeAll(async () => {
  service = await openTestService({
    agents: { parent_agent_id: {}, child_agent_id: { parent: 'parent_agent_id' }, Other: {} },
  })
  tokens = {
    parent: await service.mint('parent_agent_id'),
    child: await service.mint('child_agent_id'),
    operator: service.tokens.operator,
  }
})
afterAll(() => service.close())

type Said = (type: MessageType) => Promise<unknown>

const tokenFor = (type: MessageType) => tokens[SPEAKERS[type]]
/** For text notations, values other than strings are JSON. */
function textFields(type: MessageType): Record<string, string> {
  const { type: _, ...fields } = JSON.parse(SEED[type]) as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )
}
const bodyOf = (type: MessageType) =>
  (BUILT_IN_COMMANDS[type.toLowerCase() as CommandType] as CommandDefinition).body!
const asText = async (type: MessageType, text: string) => {
  const { status, json } = await service.text(tokenFor(type), `Let me see.\n\n${text}\n\nSo much for now.`)
  expect(status).toBe(200)
  expect(json).toHaveLength(1)
  return json[0]
}
const inXml = (type: MessageType, notation: 'modern' | 'legacy') =>
  asText(type, encodeCommand({ type, fields: textFields(type), body: bodyOf(type) }, notation))

const NOTATIONS: Record<string, Said> = {
  'JSON over HTTP': async (type) => (await service.command(tokenFor(type), SEED[type])).json,
  'JSON in orc_command over HTTP': async (type) =>
    (await service.command(tokenFor(type), `{"orc_command": ${SEED[type]}}`)).json,
  'an array over HTTP': async (type) => (await service.command(tokenFor(type), `[${SEED[type]}]`)).json[0],
  "JSON in an agent's text": (type) => asText(type, SEED[type]),
  "JSON in orc_command in an agent's text": (type) => asText(type, `{"orc_command": ${SEED[type]}}`),
  XML: (type) => inXml(type, 'modern'),
  'legacy XML': (type) => inXml(type, 'legacy'),
  async 'an MCP tool'(type) {
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${tokenFor(type)}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }))
    try {
      const { type: name, ...fields } = JSON.parse(SEED[type])
      return (await client.callTool({ name: name.toLowerCase(), arguments: fields })).structuredContent
    } finally {
      await client.close()
    }
  },
  async 'the shell'(type) {
    const fields = textFields(type)
    const body = fields[bodyOf(type)]!
    const options = Object.entries(fields)
      .filter(([name]) => name !== bodyOf(type))
      .flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, value])
    const verb = type === 'REQUEST_USER_INPUT' ? 'ask-user' : type.toLowerCase().replaceAll('_', '-')
    const ran = await runOrc(service.folder, [verb, ...options, '--json', body], {
      env: { ORC_URL: service.url, ORC_TOKEN: tokenFor(type) },
    })
    expect(ran).toMatchObject({ code: 0, err: '' })
    return ran.json()[0]
  },
}

async function task(id: string) {
  return (await service.get(`/api/v1/tasks/${id}`)).json
}
async function open(): Promise<string[]> {
  return (await service.get('/api/v1/tasks')).json.tasks.map(({ id }: { id: string }) => id)
}

/** The expected receipt of each message, and the task after it. */
const OUTCOMES: Record<MessageType, (receipt: unknown, id: string) => Promise<void>> = {
  async DELEGATE(receipt, id) {
    expect(receipt).toEqual({
      status: 'ok',
      result: `${id} is delegated to child_agent_id`,
      details: { task_id: id, to: 'child_agent_id' },
    })
    expect(await task(id)).toMatchObject({
      state: 'pending',
      delegator: 'parent_agent_id',
      agent: 'child_agent_id',
      task: 'Research flights from LAX to Italy',
      context: { budget: { most: 900, currency: 'USD' }, stops: [0, 1] },
    })
  },
  async QUERY(receipt, id) {
    expect(receipt).toMatchObject({
      status: 'ok',
      details: { task_id: id, question_id: expect.stringMatching(/^msg_\d+$/) },
    })
    expect(await task(id)).toMatchObject({
      state: 'waiting_parent',
      questions: [
        { kind: 'query', to: 'parent_agent_id', text: 'Should I prioritize price or convenience?' },
      ],
    })
  },
  async ANSWER(receipt, id) {
    expect(receipt).toMatchObject({ status: 'ok', details: { task_id: id } })
    expect(await task(id)).toMatchObject({ state: 'executing', questions: [] })
    expect((await service.mailOf('child_agent_id')).at(-1)).toMatchObject({
      from: 'parent_agent_id',
      content: 'Prioritize price',
    })
  },
  async REQUEST_USER_INPUT(receipt, id) {
    expect(receipt).toMatchObject({ status: 'ok', details: { task_id: id } })
    expect(await task(id)).toMatchObject({ state: 'waiting_user' })
    const { requests } = (await service.get('/api/v1/human-requests')).json
    expect(requests).toMatchObject([
      {
        kind: 'input',
        asker: 'child_agent_id',
        question: 'What is your departure city?',
        reason: 'I need this to search for flights',
      },
    ])
  },
  async USER_RESPONSE(receipt, id) {
    expect(receipt).toMatchObject({ status: 'ok' })
    expect(await task(id)).toMatchObject({ state: 'executing', questions: [] })
    expect((await service.mailOf('child_agent_id')).at(-1)!.content).toContain('LAX')
    expect((await service.get('/api/v1/human-requests')).json.requests).toEqual([])
  },
  async REPORT(receipt, id) {
    expect(receipt).toEqual({
      status: 'ok',
      result: `${id} is completed`,
      details: { task_id: id, state: 'completed' },
    })
    expect(await task(id)).toMatchObject({ state: 'completed', result: 'Found 3 flight options...' })
    expect((await service.mailOf('parent_agent_id')).at(-1)).toMatchObject({
      from: 'child_agent_id',
      content: 'Found 3 flight options...',
    })
  },
}

describe.each(Object.entries(NOTATIONS))("the seed's messages as %s (S2.2–S2.7)", (_, say) => {
  it.each(TYPES)('%s has its effect', async (type) => {
    for (const id of await open()) {
      await service.command(tokens.operator, { type: 'task_action', task_id: id, action: 'cancel' })
    }
    // The messages before it use the first notation.
    for (const before of TYPES.slice(0, TYPES.indexOf(type))) {
      expect(await NOTATIONS['JSON over HTTP']!(before)).toMatchObject({ status: 'ok' })
    }
    const receipt = await say(type)
    const id = (receipt as { details?: { task_id?: string } }).details?.task_id ?? (await open())[0]!
    await OUTCOMES[type](receipt, id)
  })
})

describe('an agent that runs', () => {
  it('delegates and reports with the messages of the seed (S2.9)', async () => {
    const team = await openTestService({
      agents: {
        parent_agent_id: {
          runtime: 'scripted',
          with: { script: [{ on: 'start', say: `First the flights.\n\n${SEED.DELEGATE}` }] },
        },
        child_agent_id: {
          parent: 'parent_agent_id',
          runtime: 'scripted',
          with: { script: [{ on: { text: 'Research flights' }, say: `Done.\n${SEED.REPORT}` }] },
        },
        Other: {},
      },
    })
    try {
      for (let step = 0; step < 20; step++) await team.clock.advance(100)
      const { json } = await team.get('/api/v1/tasks?state=all')
      expect(json.tasks).toMatchObject([
        { id: 'task_1', state: 'completed', result: 'Found 3 flight options...' },
      ])
    } finally {
      await team.close()
    }
  })
})
