import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { askPeople } from '../../src/people/people.ts'
import { openTestService, type TestService } from '../harness/service.ts'

let service: TestService
beforeEach(async () => {
  service = await openTestService({
    rules: { preset: 'mesh', ask: [{ from: 'Worker', to: 'Other', reason: 'Other is expensive' }] },
  })
})
afterEach(() => service.close())

const ask = (content: string) =>
  service.command(service.tokens.worker, { type: 'send_message', to: 'Other', content })
const decide = (id: string, body: unknown, token = service.tokens.operator) =>
  service.call('POST', `/api/v1/human-requests/${id}/verdict`, { body, token })
const list = async (token: string, query = '') =>
  (await service.get(`/api/v1/human-requests${query}`, token)).json.requests

describe('requests to people over HTTP (C9)', () => {
  it('list the exact held command', async () => {
    await ask('please')
    expect(await list(service.tokens.operator)).toEqual([
      {
        id: 'req_1',
        kind: 'approval',
        state: 'open',
        asker: 'Worker',
        question: expect.stringContaining('please'),
        reason: expect.stringContaining('Other is expensive'),
        action: {
          type: 'send_message',
          fields: expect.objectContaining({ to: 'Other', content: 'please' }),
          hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
        quorum: 1,
        approvals: [],
        decisions: ['approve', 'reject', 'modify'],
        created_at: '2030-01-01T00:00:00.000Z',
        expires_at: '2030-01-04T00:00:00.000Z',
      },
    ])
  })

  it('show an agent only its own', async () => {
    await ask('please')
    expect(await list(service.tokens.worker)).toHaveLength(1)
    expect(await list(service.tokens.other)).toEqual([])
  })

  it('show an agent its own even after many of others', async () => {
    await ask('please')
    await service.store.write(async (tx) => {
      for (let number = 0; number < 1200; number++) {
        await askPeople(tx, {
          ...{ kind: 'input', purpose: 'question', asker: 'Other', question: 'Which?', reason: 'it asks' },
        })
      }
    })
    expect(await list(service.tokens.worker)).toMatchObject([{ id: 'req_1' }])
    expect(await list(service.tokens.worker, '?state=all&limit=5')).toMatchObject([{ id: 'req_1' }])
    expect(await list(service.tokens.other, '?limit=5')).toHaveLength(5)
  })

  it('accept comments up to 10,000 characters and refuse longer ones without deciding (C20)', async () => {
    await ask('please')
    const long = await decide('req_1', { decision: 'reject', comment: 'x'.repeat(10_001) })
    expect(long.status).toBe(413)
    expect(long.json).toMatchObject({
      code: 'TOO_LARGE',
      message: 'The comment is 10001 characters; the limit is 10000',
    })
    expect(await list(service.tokens.operator)).toMatchObject([{ id: 'req_1', state: 'open' }])
    const fits = await decide('req_1', { decision: 'reject', comment: 'x'.repeat(10_000) })
    expect(fits.json.request.comment).toHaveLength(10_000)
    expect((await service.mailOf('Worker'))[0]!.content).toContain('x'.repeat(10_000))
  })

  it('accept an answer as long as a message', async () => {
    await service.command(service.tokens.worker, {
      type: 'request_user_input',
      question: 'What is the text?',
    })
    const long = await decide('req_1', { decision: 'answer', comment: 'x'.repeat(102_401) })
    expect(long).toMatchObject({ status: 413, json: { code: 'TOO_LARGE' } })
    const fits = await decide('req_1', { decision: 'answer', comment: 'x'.repeat(20_000) })
    expect(fits.json.request).toMatchObject({ state: 'answered', comment: 'x'.repeat(20_000) })
  })

  it('run the command when approved, and notify the asker', async () => {
    expect((await ask('please')).json).toMatchObject({
      status: 'held',
      request_id: 'req_1',
      reason: expect.stringContaining('Other is expensive'),
    })
    expect(await service.mailOf('Other')).toEqual([])
    const { status, json } = await decide('req_1', { decision: 'approve', comment: 'go on' })
    expect(status).toBe(200)
    expect(json).toMatchObject({
      request: { id: 'req_1', state: 'approved', decided_by: 'operator', comment: 'go on' },
      receipt: { status: 'delivered', to: 'Other' },
    })
    expect((await service.mailOf('Other')).map((mail) => mail.content)).toEqual(['please'])
    expect((await service.mailOf('Worker'))[0]).toMatchObject({
      from: 'orchestrator',
      title: 'req_1 approved: send_message',
      content: expect.stringMatching(/go on[\s\S]*Status: delivered/),
    })
    expect(await list(service.tokens.operator)).toEqual([])
    expect(await list(service.tokens.operator, '?state=all')).toHaveLength(1)
  })

  it('run nothing when rejected', async () => {
    await ask('please')
    const { json } = await decide('req_1', { decision: 'reject', comment: 'not now' })
    expect(json).toMatchObject({
      request: { state: 'rejected' },
      receipt: { status: 'blocked', reason: 'a person rejected it: not now' },
    })
    expect(await service.mailOf('Other')).toEqual([])
    expect((await service.mailOf('Worker'))[0]).toMatchObject({ title: 'req_1 rejected: send_message' })
  })

  it('accept one verdict, of the right kind, from the operator', async () => {
    await ask('please')
    expect((await decide('req_1', { decision: 'approve' }, service.tokens.worker)).status).toBe(403)
    expect((await decide('req_1', { decision: 'answer', comment: 'x' })).json.code).toBe('CONFLICT')
    expect((await decide('req_1', { decision: 'perhaps' })).status).toBe(400)
    expect((await decide('req_9', { decision: 'approve' })).status).toBe(404)
    const both = await Promise.all([
      decide('req_1', { decision: 'approve' }),
      decide('req_1', { decision: 'reject' }),
    ])
    expect(both.map((reply) => reply.status)).toEqual([200, 409])
    expect(await service.mailOf('Other')).toHaveLength(1)
  })
})
