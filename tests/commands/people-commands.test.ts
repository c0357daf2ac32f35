import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ROUTES, type Route } from '../../src/api/contract.ts'
import { agent, OPERATOR } from '../harness/engine.ts'
import { openTestService, type TestService } from '../harness/service.ts'

const TYPES = Object.values<Route>(ROUTES).flatMap(({ command }) => (command === undefined ? [] : [command]))

/** Fields that satisfy the schema of every command that only people send. */
const FIELDS = {
  agent: 'Worker',
  id: 'run_1',
  decision: 'approve',
  question: 'Why?',
  plan: 'agents: { a: { command: "true" } }',
  folder: '/',
  to: 'a',
  content: 'x',
  which: 'Worker',
  keys: 'x',
}

let service: TestService
beforeEach(async () => {
  service = await openTestService({ people: { vera: { role: 'viewer' }, ada: {} } })
})
afterEach(() => service.close())

const person = (name: string) => ({ kind: 'person', person: name }) as const
const stored = async () => JSON.stringify(await service.store.all('SELECT * FROM idempotency'))

describe('a command that only people send', () => {
  it('is the only way in which a route starts runs, decides, asks, halts, mints tokens or uses a terminal', () => {
    expect(TYPES.sort()).toEqual([
      'ask',
      'cancel_run',
      'create_token',
      'decide',
      'end_halt',
      'halt',
      'interrupt_agent',
      'release_terminal',
      'resume_run',
      'revoke_tokens',
      'send_to_run',
      'start_run',
      'take_terminal',
      'type_keys',
    ])
  })

  it.each(TYPES)(
    '%s is refused to agents, to people who speak for one, and to viewers (C3)',
    async (type) => {
      const forbidden = { status: 'error', code: 'FORBIDDEN' }
      const said = { type, fields: FIELDS }
      expect(await service.handle(agent('Worker'), said)).toMatchObject(forbidden)
      const forWorker = { type, fields: { ...FIELDS, from: 'Worker' } }
      expect(await service.handle(OPERATOR, forWorker)).toMatchObject(forbidden)
      // A viewer may be one of the people who decide; there is no such request here.
      const code = type === 'decide' ? 'NOT_FOUND' : 'FORBIDDEN'
      expect(await service.handle(person('vera'), said)).toMatchObject({ status: 'error', code })
      const refused = service.entries.filter((entry) => entry.type === 'security.forbidden')
      expect(refused[0]).toMatchObject({ actor: 'Worker', data: { command: type, code: 'FORBIDDEN' } })
      expect(refused[1]).toMatchObject({ actor: 'operator' })
    },
  )

  it('is not explained to agents by mistakes in its fields', async () => {
    for (const type of TYPES) {
      const receipt = await service.handle(agent('Worker'), { type, fields: {} })
      expect(receipt).toMatchObject({ code: 'FORBIDDEN', message: 'Only the operator may do this' })
    }
  })

  it('is no MCP tool, whatever name a client calls', async () => {
    const params = { name: 'halt', arguments: {} }
    const { text } = await service.call('POST', '/mcp', {
      body: { jsonrpc: '2.0', id: 1, method: 'tools/call', params },
    })
    expect(text).toContain('Unknown')
    expect(service.haltState.halted()).toBeUndefined()
  })

  it('that viewers send in the name of an agent counts against themselves', async () => {
    const said = { type: 'send_message', fields: { from: 'Worker', to: 'Master', content: 'x' } }
    expect(await service.handle(person('vera'), said)).toMatchObject({ code: 'FORBIDDEN' })
    expect(service.entries.at(-1)).toMatchObject({ type: 'security.forbidden', actor: 'vera' })
  })

  it('is in no prompt, in no list of commands, and not heard in what an agent writes', async () => {
    const prompt = service.prompt('Worker')!
    for (const type of TYPES.filter((one) => one.includes('_'))) expect(prompt).not.toContain(type)
    const { commands } = (await service.get('/api/v1/commands', service.tokens.worker)).json
    const listed = new Set(commands.map((one: { type: string }) => one.type))
    expect(TYPES.filter((type) => listed.has(type))).toEqual([])
    const { json } = await service.text(service.tokens.worker, '<halt>\n</halt>')
    expect(json).toEqual([])
    expect(service.haltState.halted()).toBeUndefined()
  })

  it('is refused to agents during a halt, like user_response, which they know', async () => {
    const answer = { type: 'user_response', fields: { in_response_to: 'req_1', answer: 'yes' } }
    expect(await service.handle(agent('Worker'), answer)).toMatchObject({ code: 'FORBIDDEN' })
    await service.handle(OPERATOR, { type: 'halt', fields: {} })
    expect(await service.handle(agent('Worker'), answer)).toMatchObject({ code: 'HALTED' })
  })

  it('acts the same as a command and as a route, and the audit names the person', async () => {
    const byRoute = await service.call('POST', '/api/v1/halt', { body: { reason: 'lunch' } })
    expect(byRoute.json).toMatchObject({ status: 'halted', already: false, halt: { by: 'operator' } })
    const byCommand = await service.handle(person('ada'), { type: 'end_halt', fields: {} })
    expect(byCommand).toMatchObject({ status: 'ok', details: { status: 'going', halt: { reason: 'lunch' } } })
    expect(service.entries.at(-1)).toMatchObject({ type: 'team.resumed', actor: 'ada' })
  })
})

describe('an idempotency key of a person (C25)', () => {
  it('starts one run, however often and however closely it is repeated', async () => {
    const fields = { plan: FIELDS.plan, folder: service.folder }
    const start = () => service.handle(OPERATOR, { type: 'start_run', fields }, { idempotencyKey: 'k' })
    const receipts = [...(await Promise.all([start(), start(), start()])), await start()]
    for (const receipt of receipts) expect(receipt).toMatchObject({ details: { run_id: 'run_1' } })
    expect(service.types().filter((type) => type === 'run.ordered')).toHaveLength(1)
    const other = { type: 'start_run', fields: { ...fields, name: 'another' } }
    expect(await service.handle(OPERATOR, other, { idempotencyKey: 'k' })).toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    })
  })

  it('protects an act outside the store, too: the receipt is stored after the act', async () => {
    const halt = () => service.handle(OPERATOR, { type: 'halt', fields: {} }, { idempotencyKey: 'h' })
    const end = () => service.handle(OPERATOR, { type: 'end_halt', fields: {} }, { idempotencyKey: 'e' })
    await halt()
    const first = await end()
    // A key never keeps anyone from stopping everything.
    await halt()
    expect(service.haltState.halted()).toBeDefined()
    expect(await end()).toEqual(first)
    expect(service.haltState.halted()).toBeDefined()
  })

  it('keeps no token: each request creates a new one', async () => {
    const create = async () =>
      (
        await service.call('POST', '/api/v1/tokens', {
          body: { agent: 'Worker' },
          headers: { 'idempotency-key': 't' },
        })
      ).json.token
    const [one, two] = [await create(), await create()]
    expect(one).toMatch(/^orct_/)
    expect(two).not.toBe(one)
    expect(await stored()).not.toContain('orct_')
  })

  it('is not needed for the receipt to name unknown fields', async () => {
    const receipt = await service.handle(OPERATOR, { type: 'halt', fields: { becuase: 'x' } })
    expect(receipt).toMatchObject({ status: 'ok', ignored: ['becuase'] })
    expect(service.entries.at(-1)).toMatchObject({ type: 'command.fields_ignored' })
  })

  it('may be used again after a refusal', async () => {
    const cancel = () =>
      service.handle(OPERATOR, { type: 'cancel_run', fields: { id: 'run_1' } }, { idempotencyKey: 'c' })
    expect(await cancel()).toMatchObject({ code: 'NOT_FOUND' })
    await service.handle(OPERATOR, {
      type: 'start_run',
      fields: { plan: FIELDS.plan, folder: service.folder },
    })
    expect(await cancel()).toMatchObject({ status: 'ok', details: { run_id: 'run_1' } })
  })
})
