import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { ROUTES, type Route, type RouteName } from '../../src/api/contract.ts'
import { defineCommand } from '../../src/protocol/command.ts'
import { openTestService, type TestService } from '../harness/service.ts'

const RUN_FOLDER = mkdtempSync(join(tmpdir(), 'orchub-openapi-'))
const RUN_PLAN = 'messages: true\nagents: { a: { command: "sleep 60" } }'
afterAll(() => rmSync(RUN_FOLDER, { recursive: true, force: true }))

const greet = defineCommand({
  type: 'greet',
  summary: 'Say hello',
  fields: z.object({ name: z.string().describe('Whom'), loudly: z.boolean().default(false) }),
  example: 'orc greet --name Worker',
})

let service: TestService
// biome-ignore lint/suspicious/noExplicitAny: a document of any depth.
let document: any
beforeAll(async () => {
  service = await openTestService(
    {
      agents: {
        Master: {},
        Worker: { parent: 'Master' },
        Other: {},
        Player: { runtime: 'scripted', with: { script: [{ on: { text: 'no such text' }, say: 'hm' }] } },
      },
      rules: { preset: 'mesh', ask: [{ from: 'Other', to: 'Master' }] },
      // Nothing listens on port 9.
      webhooks: { chat: { url: 'http://127.0.0.1:9/x', events: ['task.failed'], format: 'slack' } },
    },
    {
      commands: [
        {
          definition: greet,
          handler: { handle: (_, { name }) => ({ status: 'ok', result: `Hello ${name}` }) },
        },
      ],
    },
  )
  document = (await service.get('/openapi.json', service.tokens.worker)).json
})
afterAll(() => service.close())

function* nodes(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield value as Record<string, unknown>
  for (const inner of Object.values(value)) yield* nodes(inner)
}

describe('/openapi.json', () => {
  it('describes every route with its method, its parameters and whether it needs a token', () => {
    expect(document.openapi).toBe('3.1.0')
    expect(document.info).toMatchObject({ title: 'Orchub', version: '1.2.3' })
    for (const [name, route] of Object.entries<Route>(ROUTES)) {
      const operation = document.paths[route.path][route.method]
      expect(operation.operationId).toBe(name)
      expect(operation.summary).toBe(route.summary)
      expect(operation.security, name).toEqual(route.who === 'anyone' ? [] : [{ token: [] }])
      const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      const inQuery = Object.keys(route.query?.shape ?? {})
      expect(operation.parameters.map((one: { name: string }) => one.name)).toEqual([...inPath, ...inQuery])
      expect(operation.requestBody === undefined, name).toBe(route.body === undefined)
      expect(Object.keys(operation.responses['200'].content).length, name).toBeGreaterThan(0)
    }
    const operations = Object.values<object>(document.paths).flatMap((path) => Object.keys(path))
    expect(operations).toHaveLength(Object.keys(ROUTES).length)
  })

  it('has no dangling references', () => {
    const refs = [...nodes(document)].flatMap((node) => (typeof node.$ref === 'string' ? [node.$ref] : []))
    expect(refs.length).toBeGreaterThan(10)
    for (const ref of new Set(refs)) {
      const target = ref
        .slice(2)
        .split('/')
        .reduce((value, key) => value?.[key], document)
      expect(target, ref).toBeTypeOf('object')
    }
    expect(JSON.stringify(document)).not.toContain('$defs')
    const ids = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap((path) =>
      Object.values(path).map((operation) => operation.operationId),
    )
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('describes every command, also those of the embedding application (S1.23)', () => {
    const { schemas } = document.components
    expect(schemas.Command_greet).toMatchObject({
      properties: { type: { const: 'greet' }, name: { type: 'string', description: 'Whom' } },
      required: ['type', 'name'],
    })
    expect(schemas.Command_send_message.required).toEqual(['type', 'to', 'content'])
    expect(schemas.Command_send_message.properties.priority).toMatchObject({
      enum: ['low', 'normal', 'high', 'urgent'],
      default: 'normal',
    })
    expect(schemas.Command_update_status.properties.status.enum).toContain('working')
    const content = document.paths['/api/v1/commands'].post.requestBody.content
    expect(Object.keys(content)).toEqual(['application/json', 'text/plain'])
  })

  it('contains only valid JSON Schemas', () => {
    for (const node of nodes(document)) {
      if (node.schema === undefined) continue
      expect(() => z.fromJSONSchema(withDefinitions(node.schema))).not.toThrow()
    }
  })
})

/** The schema together with the definitions it refers to. */
function withDefinitions(schema: unknown) {
  const text = JSON.stringify({ ...(schema as object), $defs: document.components.schemas })
  return JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/'))
}

describe('the answers of the service', () => {
  const calls: [RouteName, string, unknown?][] = [
    ['health', '/healthz'],
    ['mintLogin', '/api/v1/logins', {}],
    ['me', '/api/v1/me'],
    ['figures', '/api/v1/figures'],
    ['rulesMatrix', '/api/v1/rules/matrix'],
    ['command', '/api/v1/commands', { type: 'send_message', from: 'Master', to: 'Worker', content: 'x' }],
    ['command', '/api/v1/commands', { type: 'send_message', from: 'Other', to: 'Master', content: 'x' }],
    ['command', '/api/v1/commands', { type: 'send_message', to: '*', content: 'x' }],
    ['command', '/api/v1/commands', [{ type: 'greet', name: 'you', shout: 1 }, { type: 'no' }, {}]],
    ['commandTypes', '/api/v1/commands'],
    ['agents', '/api/v1/agents'],
    ['terminal', '/api/v1/agents/Player/terminal?lines=10'],
    ['transcript', '/api/v1/agents/Player/transcript'],
    ['agentActions', '/api/v1/agents/Player/actions'],
    ['github', '/api/v1/github'],
    ['messages', '/api/v1/messages'],
    ['message', '/api/v1/messages/msg_1'],
    ['mailbox', '/api/v1/mailbox?agent=Worker&filter=all'],
    ['deliveries', '/api/v1/deliveries'],
    ['nextDeliveries', '/api/v1/deliveries/next?agent=Worker&wait=0'],
    ['command', '/api/v1/commands', { type: 'DELEGATE', to: 'Worker', task: 'x', context: { a: 1 } }],
    ['tasks', '/api/v1/tasks'],
    ['task', '/api/v1/tasks/task_1'],
    ['ask', '/api/v1/asks', { question: 'What is it?', agent: 'Master' }],
    ['trace', '/api/v1/tasks/task_2/trace'],
    ['startRun', '/api/v1/runs', { plan: RUN_PLAN, folder: RUN_FOLDER }],
    ['runs', '/api/v1/runs'],
    ['run', '/api/v1/runs/run_1'],
    ['sendToRun', '/api/v1/runs/run_1/messages', { to: 'a', type: 'question', content: { a: 1 } }],
    ['resumeRun', '/api/v1/runs/run_1/resume', {}],
    ['cancelRun', '/api/v1/runs/run_1/cancel', { reason: 'a test' }],
    ['humanRequests', '/api/v1/human-requests'],
    ['decide', '/api/v1/human-requests/req_1/verdict', { decision: 'approve', comment: 'fine' }],
    ['humanRequests', '/api/v1/human-requests?state=all'],
    ['humanRequest', '/api/v1/human-requests/req_1'],
    ['audit', '/api/v1/audit'],
    ['auditVerify', '/api/v1/audit/verify'],
    ['state', '/api/v1/state'],
    ['halt', '/api/v1/halt', { reason: 'a test' }],
    ['health', '/healthz'],
    ['state', '/api/v1/state'],
    ['go', '/api/v1/go', {}],
    ['go', '/api/v1/go', {}],
    ['testWebhook', '/api/v1/webhooks/chat/test', {}],
    ['webhooks', '/api/v1/webhooks'],
    ['prompt', '/api/v1/prompts/worker'],
    ['explain', '/api/v1/rules/explain?from=master&to=operator'],
    ['explain', '/api/v1/rules/explain?from=Other&to=Master&action=urgent'],
    ['tokens', '/api/v1/tokens'],
    ['mintToken', '/api/v1/tokens', { agent: 'operator' }],
    ['mintToken', '/api/v1/tokens', { agent: 'worker' }],
    ['revokeTokens', '/api/v1/tokens/Worker'],
    ['mcp', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    ['openapi', '/openapi.json'],
    ['stop', '/api/v1/stop', {}],
  ]
  it.each(calls)('fit the schema of %s, and lose nothing by it (%s)', async (name, path, body) => {
    const route: Route = ROUTES[name]
    const reply = await service.call(route.method.toUpperCase(), path, { body })
    expect([200, 202], reply.text).toContain(reply.status)
    expect(route.answer.parse(reply.json)).toEqual(reply.json)
    const schema =
      document.paths[route.path][route.method].responses[String(reply.status)].content['application/json']
        .schema
    expect(z.fromJSONSchema(withDefinitions(schema)).parse(reply.json)).toEqual(reply.json)
  })

  it('match the schema of an error', async () => {
    for (const path of [
      '/api/v1/nothing',
      '/api/v1/mailbox',
      '/api/v1/messages/msg_99',
      '/api/v1/tokens/tok_99',
    ]) {
      const { json } = await service.call(path.includes('tok_') ? 'DELETE' : 'GET', path)
      expect(z.fromJSONSchema(withDefinitions({ $ref: '#/components/schemas/Error' })).parse(json)).toEqual(
        json,
      )
    }
  })

  it('are checked for every route with a finite JSON response', () => {
    const tried = new Set(calls.map(([name]) => name))
    const rest = Object.keys(ROUTES).filter((name) => !tried.has(name as RouteName))
    // Streams, other formats, and routes that need a browser, a terminal, a finished run or GitHub.
    expect(rest.join(' ')).toBe(
      'openSession closeSession terminalEvents takeTerminal releaseTerminal typeKeys interrupt taskEvents ' +
        'runEvents runLog runLogEvents runOutput runReport proposePlan events moderationChanges moderation ' +
        'closeModeration githubChanges githubWebhook nextTeamMessages sayTeamMessage githubSetup ' +
        'replayEvent githubEvent hook metrics',
    )
  })
})
