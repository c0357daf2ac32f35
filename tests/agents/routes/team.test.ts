import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineCommand } from '../../../src/protocol/command.ts'
import { openTestService, type TestService } from '../../harness/service.ts'

const breaking = defineCommand({
  type: 'break_down',
  summary: 'Fail',
  fields: z.object({}),
  example: 'orc break-down',
})

let service: TestService
const logged: unknown[] = []
beforeAll(async () => {
  service = await openTestService(
    { rules: { preset: 'mesh', forbid: [{ from: 'Worker', to: 'Other', reason: 'no' }] } },
    {
      commands: [
        {
          definition: breaking,
          handler: {
            handle() {
              throw new Error('the inner secret')
            },
          },
        },
      ],
      service: { configStatus: () => ({ file: '/a/orc.yaml', loadedAt: 0, problem: 'line 3: no' }) },
    },
  )
  service.log.error = (fields) => void logged.push(fields)
})
afterAll(() => service.close())

describe('the routes about the team', () => {
  it('list the agents with their status', async () => {
    await service.say('Worker', 'update_status', { status: 'working', current_task: 'sums' })
    const { json } = await service.get('/api/v1/agents', service.tokens.other)
    expect(json.agents).toEqual([
      expect.objectContaining({ name: 'Master', paused: false }),
      expect.objectContaining({ name: 'Worker', parent: 'Master', status: 'working', current_task: 'sums' }),
      expect.objectContaining({ name: 'Other' }),
    ])
  })

  it('return an agent its own prompt, and the operator every prompt (S0.24)', async () => {
    const own = await service.get('/api/v1/prompts/WORKER', service.tokens.worker)
    expect(own.json).toMatchObject({ agent: 'Worker', prompt: expect.stringContaining('You are Worker') })
    expect((await service.get('/api/v1/prompts/Worker')).status).toBe(200)
    expect((await service.get('/api/v1/prompts/Worker', service.tokens.other)).status).toBe(403)
    expect((await service.get('/api/v1/prompts/Nobody')).json.code).toBe('UNKNOWN_AGENT')
  })

  it('explain which rule decides and why', async () => {
    const { json } = await service.get('/api/v1/rules/explain?from=worker&to=other')
    expect(json.decision).toMatchObject({
      verdict: 'deny',
      rule: 'rules.forbid[0]',
      reason: expect.stringContaining('no'),
    })
    expect(json.steps.at(-1)).toMatchObject({ rule: 'rules.forbid[0]', verdict: 'deny' })
    const action = await service.get('/api/v1/rules/explain?from=Worker&to=Other&action=spawn_agent')
    expect(action.json.decision.verdict).toBe('deny')
    expect((await service.get('/api/v1/rules/explain?from=Worker&to=Nobody')).status).toBe(404)
  })

  it('describe the service itself', async () => {
    const { json } = await service.get('/api/v1/state')
    expect(json).toMatchObject({
      version: '1.2.3',
      pid: process.pid,
      started_at: '2030-01-01T00:00:00.000Z',
      store: { engine: 'sqlite', place: 'a test', pending: 0 },
      config: { file: '/a/orc.yaml', loaded_at: '1970-01-01T00:00:00.000Z', problem: 'line 3: no' },
      open_requests: 0,
    })
    expect(json.agents).toHaveLength(3)
  })

  it('list the commands with their parameters', async () => {
    const { json } = await service.get('/api/v1/commands')
    const send = json.commands.find((one: { type: string }) => one.type === 'send_message')
    expect(send).toMatchObject({ body: 'content', example: expect.stringContaining('orc send-message') })
    expect(send.schema.required).toEqual(['to', 'content'])
    expect(json.commands.map((one: { type: string }) => one.type)).toContain('break_down')
  })
})

describe('the routes about tokens', () => {
  it('create a token that works and show it only once', async () => {
    const { json } = await service.call('POST', '/api/v1/tokens', { body: { agent: 'worker' } })
    expect(json).toEqual({
      id: expect.stringMatching(/^tok_/),
      agent: 'Worker',
      token: expect.stringMatching(/^orct_/),
    })
    expect((await service.get('/api/v1/mailbox', json.token)).status).toBe(200)
    const list = await service.get('/api/v1/tokens')
    expect(list.json.tokens).toContainEqual({
      id: json.id,
      agent: 'Worker',
      kind: 'agent',
      created_at: expect.any(String),
    })
    expect(list.text).not.toContain(json.token)
    expect((await service.call('DELETE', `/api/v1/tokens/${json.id}`)).json).toEqual({ revoked: 1 })
    expect((await service.get('/api/v1/mailbox', json.token)).status).toBe(401)
    expect((await service.get('/api/v1/mailbox', service.tokens.worker)).status).toBe(200)
    expect((await service.call('DELETE', `/api/v1/tokens/${json.id}`)).status).toBe(404)
  })

  it('create one for another operator', async () => {
    const { json } = await service.call('POST', '/api/v1/tokens', { body: { agent: 'Operator' } })
    expect(json.agent).toBe('operator')
    expect((await service.get('/api/v1/tokens', json.token)).status).toBe(200)
  })

  it('leave no token in the audit', async () => {
    const { json } = await service.call('POST', '/api/v1/tokens', { body: { agent: 'Worker' } })
    expect((await service.get('/api/v1/audit')).text).not.toContain(json.token)
  })
})

describe('an internal error', () => {
  it('is answered with 500 and logged, and reveals no internals to the caller', async () => {
    const { status, json, text } = await service.command(service.tokens.master, { type: 'break_down' })
    expect([status, json.code]).toEqual([500, 'INTERNAL'])
    expect(text).not.toContain('secret')
    expect(logged).toEqual([
      expect.objectContaining({ err: expect.objectContaining({ message: 'the inner secret' }) }),
    ])
  })

  it('in one command of an array does not affect the others', async () => {
    const message = { type: 'send_message', to: 'Worker', content: 'x' }
    const { json } = await service.command(service.tokens.master, [message, { type: 'break_down' }, message])
    expect(json.map((receipt: { status: string }) => receipt.status)).toEqual([
      'delivered',
      'error',
      'delivered',
    ])
  })
})
