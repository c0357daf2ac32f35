import { afterEach, describe, expect, it } from 'vitest'
import { problemWith, unusableSchema } from '../../src/engine/result-schema.ts'
import { openTeam, type TaskTeam } from './task-harness.ts'

let team: TaskTeam | undefined
afterEach(async () => {
  await team?.close()
  team = undefined
})

const FLIGHT = {
  type: 'object',
  required: ['airline', 'price'],
  properties: { airline: { type: 'string' }, price: { type: 'number', minimum: 0 } },
}

async function delegated(schema: unknown = FLIGHT) {
  team = await openTeam({ Master: {}, Worker: { parent: 'Master' } })
  await team.rest('Master', 'Worker')
  return await team.says('Master', 'delegate', { to: 'Worker', task: 'Find it', result_schema: schema })
}
const report = (result: string) => team!.says('Worker', 'report', { status: 'completed', result })

describe('a delegation with a schema for its result (C22)', () => {
  it('tells the worker of it, takes what fits, and keeps that as evidence', async () => {
    await delegated()
    expect(team!.turn('Worker')).toContain(
      `Report as result nothing but JSON that fits this schema:\n${JSON.stringify(FLIGHT)}`,
    )
    await report('{"airline": "AZ", "price": 540}')
    expect(await team!.task('task_1')).toMatchObject({
      state: 'completed',
      evidence: [{ step: 'schema', outcome: 'passed', text: 'the result fits its schema' }, {}, {}],
    })
  })

  it('sends back what does not fit, and says at once and in the follow-up what is wrong', async () => {
    await delegated(JSON.stringify(FLIGHT))
    const receipt = await report('{"airline": "AZ", "price": "540 EUR"}')
    expect(receipt).toMatchObject({
      status: 'ok',
      result: expect.stringMatching(/^task_1 is not done: the result does not fit .*price: .*report again$/),
      details: { accepted: false, state: 'executing' },
    })
    await team!.ends('Worker')
    expect(team!.turn('Worker')).toMatch(/was not accepted: the result does not fit .*price: /)
    expect(await report('The price is 540.')).toMatchObject({
      result: expect.stringContaining('the result is not JSON'),
    })
    await report('Here it is:\n```json\n{"airline": "AZ", "price": 540}\n```')
    expect(await team!.task('task_1')).toMatchObject({ state: 'completed', rejections: 2 })
  })

  it('leaves a report of partial or needs_help as it is', async () => {
    await delegated()
    await team!.says('Worker', 'report', { status: 'needs_help', result: 'Which airport?' })
    expect(await team!.task('task_1')).toMatchObject({ state: 'waiting_parent', rejections: 0 })
  })

  it.each([
    ['words', 'a number please', /result_schema/],
    [
      'a reference',
      { properties: { a: { items: [{ $ref: '#/definitions/x' }] } } },
      /"\$ref" is not supported/,
    ],
    ['a pattern', { type: 'string', pattern: '^(a+)+$' }, /"pattern" is not supported/],
    ['an unknown type', { type: 'flight' }, /cannot be used/],
    ['too much', { type: 'string', description: 'x'.repeat(30_000) }, /at most 20000/],
  ])('is refused with %s for a schema', async (_, schema, message) => {
    expect(await delegated(schema)).toMatchObject({
      code: 'INVALID_COMMAND',
      message: expect.stringMatching(message),
    })
    expect(await team!.task('task_1')).toBeUndefined()
  })

  it('may have properties that are called as keywords are', () => {
    const schema = {
      type: 'object',
      properties: { pattern: { type: 'string' }, $ref: { const: { $ref: 'a value' } } },
    }
    expect(unusableSchema(schema)).toBeUndefined()
    expect(problemWith(schema, '{"pattern": 5}')).toContain('pattern: ')
  })
})

describe('a report of completed that is blank (S2.11)', () => {
  it('gets a receipt that says what is missing, and is asked for again; at the limit its parent decides', async () => {
    team = await openTeam({ Master: {}, Worker: { parent: 'Master' } }, { tasks: { retries: 1 } })
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Find it' })
    expect(await report('  ')).toMatchObject({
      status: 'ok',
      result: 'task_1 is not done: the result is empty. Put it right and report again',
      details: { task_id: 'task_1', accepted: false, missing: 'the result is empty' },
    })
    await team.ends('Worker')
    expect(await report('')).toMatchObject({
      result: 'task_1 is not done: the result is empty. Its delegator decides',
      details: { state: 'waiting_parent' },
    })
  })
})
