import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineConfig } from '../../src/config/config.ts'
import { eventsIn, openStream, openTestService, type TestService } from '../harness/service.ts'

const TEAM = {
  agents: { Master: {}, Worker: { parent: 'Master' }, Other: {} },
  people: { ada: {}, ben: {}, vera: { role: 'viewer' as const }, mo: { role: 'moderator' as const } },
  rules: { ask: [{ from: 'Worker', to: 'Other', approvers: ['ada', 'ben'], quorum: 2 }] },
}

let service: TestService
const token: Record<string, string> = {}
beforeEach(async () => {
  service = await openTestService(TEAM)
  for (const name of Object.keys(TEAM.people)) {
    const { json } = await service.call('POST', '/api/v1/tokens', { body: { agent: name.toUpperCase() } })
    expect(json).toMatchObject({ agent: name })
    token[name] = json.token
  }
})
afterEach(() => service.close())

const ask = (content = 'please') =>
  service.command(service.tokens.worker, { type: 'send_message', to: 'Other', content })
const decide = (name: string, body: unknown, id = 'req_1') =>
  service.call('POST', `/api/v1/human-requests/${id}/verdict`, { body, token: token[name] })
const requestOf = async (name: string) =>
  (await service.get('/api/v1/human-requests/req_1', token[name]!)).json

describe('people with tokens', () => {
  it('are identified by token, approve once each, and appear by name in the audit (C9)', async () => {
    await ask()
    const first = await decide('ada', { decision: 'approve', comment: 'yes' })
    expect(first.json).toEqual({
      request: expect.objectContaining({
        state: 'open',
        quorum: 2,
        approvers: ['ada', 'ben'],
        approvals: [{ by: 'ada', at: '2030-01-01T00:00:00.000Z', comment: 'yes' }],
      }),
    })
    expect((await decide('ada', { decision: 'approve' })).status).toBe(409)
    const refused = await service.call('POST', '/api/v1/human-requests/req_1/verdict', {
      body: { decision: 'approve' },
    })
    expect(refused).toMatchObject({ status: 403, json: { hint: 'Its approvers: ada, ben.' } })
    expect((await decide('ben', { decision: 'approve' })).json).toMatchObject({
      request: { state: 'approved', decided_by: 'ben' },
      receipt: { status: 'delivered' },
    })
    expect(await service.mailOf('Other')).toHaveLength(1)
    const { json } = await service.get('/api/v1/audit?type=human')
    expect(json.entries.map(({ actor }: { actor: string }) => actor)).toEqual(['Worker', 'ada', 'ben'])
  })

  it('see only the decisions that they may make', async () => {
    await ask()
    expect((await requestOf('ada')).decisions).toEqual(['approve', 'reject', 'modify'])
    expect((await requestOf('vera')).decisions).toEqual([])
    expect((await service.get('/api/v1/human-requests/req_1')).json.decisions).toEqual([])
    expect((await service.get('/api/v1/human-requests/req_1', service.tokens.worker)).json.decisions).toEqual(
      [],
    )
    expect((await service.get('/api/v1/human-requests/req_1', service.tokens.master)).status).toBe(404)
    expect((await service.get('/api/v1/human-requests/req_7')).status).toBe(404)
  })

  it('lose access and open streams at once when their token is revoked', async () => {
    const stream = await openStream(service.port, '/api/v1/events', token.ada!)
    expect((await service.call('DELETE', '/api/v1/tokens/Ada')).json).toEqual({ revoked: 1 })
    await stream.ended
    await ask()
    expect((await decide('ada', { decision: 'approve' })).status).toBe(401)
  })

  it('lose access when orc.yaml no longer names them, and get their current role at once', async () => {
    const stream = await openStream(service.port, '/api/v1/events', token.ada!)
    const { ada: _, ...people } = TEAM.people
    await service.reload(
      defineConfig({ ...TEAM, people: { ...people, ben: { role: 'viewer' } }, rules: {} }, { env: {} }),
    )
    await ask()
    await stream.ended
    expect(await service.get('/api/v1/agents', token.ada!)).toMatchObject({
      status: 403,
      json: { code: 'FORBIDDEN' },
    })
    expect((await service.get('/api/v1/agents', token.ben!)).status).toBe(200)
    const command = { type: 'send_message', to: 'Other', content: 'x' }
    expect((await service.command(token.ben!, command)).status).toBe(403)
  })

  it('do not become agents that get their name later', async () => {
    const { ada: _, ...people } = TEAM.people
    await service.reload(defineConfig({ agents: { ...TEAM.agents, ada: {} }, people }, { env: {} }))
    expect((await service.get('/api/v1/mailbox', token.ada!)).status).toBe(403)
  })
})

describe('a viewer and a moderator', () => {
  it.each(['vera', 'mo'])('%s can read everything that the operator can', async (name) => {
    await ask()
    for (const path of [
      '/api/v1/agents',
      '/api/v1/messages',
      '/api/v1/mailbox?agent=Worker',
      '/api/v1/human-requests',
      '/api/v1/audit',
      '/api/v1/audit/verify',
      '/api/v1/state',
      '/api/v1/tasks',
      '/api/v1/tokens',
      '/api/v1/prompts/Worker',
    ]) {
      expect((await service.get(path, token[name]!)).status, path).toBe(200)
    }
    const stream = await openStream(service.port, '/api/v1/events?after=0', token[name]!)
    await stream.until((text) => eventsIn(text).some(({ event }) => event === 'human.asked'))
    stream.drop()
  })

  it.each(['vera', 'mo'])('%s can change nothing: 403 with a hint and an audit entry', async (name) => {
    await ask()
    const calls: [string, string, unknown?][] = [
      ['POST', '/api/v1/human-requests/req_1/verdict', { decision: 'approve' }],
      ['POST', '/api/v1/human-requests/req_1/verdict', { decision: 'reject' }],
      ['POST', '/api/v1/human-requests/req_1/verdict', { decision: 'modify', fields: { content: 'x' } }],
      ['POST', '/api/v1/commands', { type: 'send_message', to: 'Other', content: 'x' }],
      ['POST', '/api/v1/commands', { type: 'mailbox_check', agent: 'Worker' }],
      ['POST', '/api/v1/commands', { type: 'request_action', action: 'pause_session', target: 'Other' }],
      ['POST', '/api/v1/commands', { type: 'user_response', in_response_to: 'req_1', answer: 'x' }],
      ['POST', '/api/v1/tokens', { agent: 'Worker' }],
      ['DELETE', '/api/v1/tokens/Worker'],
      ['POST', '/api/v1/stop', {}],
      ['GET', '/api/v1/deliveries/next?agent=Worker&wait=0'],
    ]
    for (const [method, path, body] of calls) {
      const reply = await service.call(method, path, { token: token[name], body })
      expect(reply.status, path).toBe(403)
      expect(reply.json.hint, path).toContain(`The role of ${name} in orc.yaml is`)
    }
    expect((await service.command(token[name]!, { type: 'list_agents' })).status).toBe(200)
    expect((await requestOf('ada')).state).toBe('open')
  })
})

describe('tokens of people', () => {
  it('can only be created by the operator, so that a quorum cannot be forged', async () => {
    const mint = (agent: string) =>
      service.call('POST', '/api/v1/tokens', { token: token.ada, body: { agent } })
    expect((await mint('ben')).status).toBe(403)
    expect((await mint('operator')).status).toBe(403)
    expect((await mint('Worker')).status).toBe(200)
    const revoke = (which: string) => service.call('DELETE', `/api/v1/tokens/${which}`, { token: token.ada })
    const bens = (await service.get('/api/v1/tokens')).json.tokens.find(
      (one: { agent: string }) => one.agent === 'ben',
    )
    expect(bens).toMatchObject({ kind: 'person' })
    expect((await revoke('ben')).status).toBe(403)
    expect((await revoke(bens.id)).status).toBe(403)
    expect((await revoke('operator')).status).toBe(403)
    expect((await revoke('Worker')).json).toEqual({ revoked: 2 })
    expect((await revoke('ada')).json).toEqual({ revoked: 1 })
    const { json } = await service.get('/api/v1/audit?type=token')
    expect(json.entries.at(-1)).toMatchObject({ type: 'token.revoked', actor: 'ada' })
  })
})

describe('questions over HTTP', () => {
  it('show choices and accept their number; a blank answer repeats the question (S2.12)', async () => {
    await service.command(service.tokens.worker, {
      type: 'request_user_input',
      question: 'Which?',
      choices: ['Red', 'Green'],
      default: 'Red',
      allow_other: true,
    })
    expect(await requestOf('ada')).toMatchObject({
      kind: 'input',
      choices: ['Red', 'Green'],
      default: 'Red',
      allow_other: true,
      decisions: ['answer'],
    })
    expect((await decide('ada', { decision: 'answer', comment: '2' })).json.request).toMatchObject({
      state: 'answered',
      comment: 'Green',
      decided_by: 'ada',
    })
    await service.command(service.tokens.worker, { type: 'request_user_input', question: 'Where?' })
    expect(await decide('ada', { decision: 'answer', comment: ' ' }, 'req_2')).toMatchObject({
      status: 400,
      json: { code: 'INVALID_COMMAND', hint: 'Write an answer to: Where?' },
    })
  })
})
