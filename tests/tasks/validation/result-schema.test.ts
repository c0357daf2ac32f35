import { afterEach, describe, expect, it } from 'vitest'
import { problemWith, unusableSchema } from '../../../src/tasks/validation/result-schema.ts'
import { openTeam, type TaskTeam } from '../harness.ts'

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
  it('sends the schema to the worker, accepts a result that fits, and stores that as evidence', async () => {
    await delegated()
    expect(team!.turn('Worker')).toContain(
      `As the result, report only JSON that fits this schema:\n${JSON.stringify(FLIGHT)}`,
    )
    await report('{"airline": "AZ", "price": 540}')
    expect(await team!.task('task_1')).toMatchObject({
      state: 'completed',
      evidence: [{ step: 'schema', outcome: 'passed', text: 'the result fits its schema' }, {}, {}],
    })
  })

  it('rejects a result that does not fit, with the reason in the receipt and in the follow-up', async () => {
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

  it('does not validate a report of partial or needs_help', async () => {
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

  it('may have properties with the names of keywords', () => {
    const schema = {
      type: 'object',
      properties: { pattern: { type: 'string' }, $ref: { const: { $ref: 'a value' } } },
    }
    expect(unusableSchema(schema)).toBeUndefined()
    expect(problemWith(schema, '{"pattern": 5}')).toContain('pattern: ')
  })
})

function nested(levels: number): Record<string, unknown> {
  return levels === 0 ? {} : { not: nested(levels - 1) }
}

describe('a schema is enforced as it is written (C22)', () => {
  it.each<[string, object, unknown[], unknown[]]>([
    ['required without type and properties', { required: ['a'] }, [{ a: 1 }, 5], [{}, { b: 1 }]],
    [
      'a name that is no property',
      { type: 'object', required: ['a'], properties: { b: {} } },
      [{ a: null }],
      [{}],
    ],
    ['a default', { required: ['a'], properties: { a: { type: 'number', default: 3 } } }, [{ a: 3 }], [{}]],
    ['a number without type', { minimum: 3, exclusiveMaximum: 5 }, [3, 4.9, 'x'], [2, 5]],
    ['a list without items', { type: 'array', minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], [1, 2, 3], {}]],
    [
      'unlike items',
      { uniqueItems: true },
      [
        [1, '1'],
        [{ a: 1 }, { a: 2 }],
      ],
      [
        [1, 1],
        [
          { a: 1, b: 2 },
          { b: 2, a: 1 },
        ],
      ],
    ],
    ['items', { items: { type: 'integer' } }, [[], [1, 2]], [[1.5], ['x']]],
    ['a tuple', { prefixItems: [{ type: 'string' }], items: false }, [[], ['x']], [[1], ['x', 1]]],
    ['an old tuple', { items: [{ type: 'string' }], additionalItems: false }, [['x']], [[1], ['x', 1]]],
    ['contains', { contains: { const: 1 }, maxContains: 2 }, [[1], [1, 2, 1]], [[], [2], [1, 1, 1]]],
    ['an object for const', { const: { a: [1] } }, [{ a: [1] }], [{ a: [2] }, {}]],
    ['enum beside a type', { type: 'string', enum: ['a', 1] }, ['a'], [1, 'b']],
    ['several types', { type: ['object', 'null'], required: ['a'] }, [null, { a: 1 }], [{}, []]],
    ['nullable', { type: 'string', nullable: true }, [null, 'x'], [1]],
    [
      'anyOf beside a limit',
      { anyOf: [{ type: 'string' }, { type: 'null' }], minLength: 2 },
      ['xy', null],
      ['x', 1],
    ],
    ['oneOf', { oneOf: [{ type: 'number' }, { minimum: 3 }] }, [2, 'x'], [4]],
    ['allOf', { allOf: [{ required: ['a'] }, { required: ['b'] }] }, [{ a: 1, b: 1 }], [{ a: 1 }]],
    ['not', { not: { type: 'string' } }, [1], ['x']],
    ['dependentRequired', { dependentRequired: { a: ['b'] } }, [{}, { a: 1, b: 1 }], [{ a: 1 }]],
    [
      'additionalProperties',
      { properties: { a: {} }, additionalProperties: { type: 'number' } },
      [{ a: 'x', b: 1 }],
      [{ b: 'x' }],
    ],
    [
      'no others',
      { properties: { a: {} }, additionalProperties: false },
      [{ a: 1 }, {}],
      [{ b: 1 }, { toString: 1 }],
    ],
    ['propertyNames', { propertyNames: { minLength: 2 } }, [{ ab: 1 }], [{ a: 1 }]],
    ['multipleOf', { multipleOf: 0.1 }, [0.3, 7], [0.35]],
    ['a length in characters', { maxLength: 1 }, ['😀'], ['ab']],
    ['a format', { format: 'date-time' }, ['2026-01-02T03:04:05Z', 5], ['tomorrow']],
  ])('%s', (_, schema, fitting, others) => {
    expect(unusableSchema({ ...schema })).toBeUndefined()
    for (const value of fitting) expect(problemWith({ ...schema }, JSON.stringify(value))).toBeUndefined()
    for (const value of others)
      expect(problemWith({ ...schema }, JSON.stringify(value))).toContain('does not fit')
  })

  it.each([
    ['a keyword with a slip', { type: 'object', requried: ['a'] }, '"requried" is not supported'],
    [
      'one inside',
      { properties: { a: { unevaluatedProperties: false } } },
      '"unevaluatedProperties" is not supported',
    ],
    ['a limit that is none', { minimum: '3' }, '"minimum": '],
    ['an old way to say required', { properties: { a: { required: true } } }, '"required": '],
    ['an unknown format', { format: 'phone' }, '"format": is not a known format'],
  ])('or is refused: %s', (_, schema, why) => {
    expect(unusableSchema(schema as Record<string, unknown>)?.message).toContain(why)
  })

  it.each([
    ['nested too deeply', nested(70), 'nested more than 64 levels deep'],
    ['of too many subschemas', { allOf: Array(300).fill({}) }, 'more than 200 subschemas'],
    ['with a name that the compiler passes over', JSON.parse('{"properties":{"__proto__":{}}}'), '__proto__'],
    ['with two kinds of tuple', { prefixItems: [{}], items: [{}] }, '"items": must be object,boolean'],
    ['with no possible value', { enum: [] }, 'enum must have non-empty array'],
    ['with a condition', { if: {}, else: false }, '"if" is not supported'],
    ['with data of another place', { minimum: { $data: '1/x' } }, '"minimum": '],
  ])('or is refused: one %s', (_, schema, why) => {
    expect(unusableSchema(schema)?.message).toContain(why)
  })

  it('is never run as code', () => {
    const hostile = [
      "'];throw 1;//",
      '"+(()=>{throw 1})()+"',
      `\`\${(()=>{throw 1})()}\``,
      '\\";throw 1//',
      '\u2028throw 1',
    ]
    for (const text of hostile) {
      const schema = {
        title: text,
        $comment: text,
        properties: { [text]: { const: text, enum: [text], minLength: 1 } },
        required: [text],
        dependentRequired: { [text]: [text] },
        additionalProperties: false,
      }
      expect(unusableSchema(schema)).toBeUndefined()
      expect(problemWith(schema, JSON.stringify({ [text]: text }))).toBeUndefined()
      expect(problemWith(schema, '{}')).toContain('must have required property')
    }
  })

  it('is checked in bounded time and memory, whatever schema and result', () => {
    const items = JSON.stringify(Array(49_000).fill(1))
    const many = Array(190).fill({ type: 'null' })
    const began = performance.now()
    expect(problemWith({ contains: { anyOf: many } }, items)).toContain('must contain at least 1')
    expect(problemWith({ items: { anyOf: [...many, { type: 'number' }] } }, items)).toBeUndefined()
    expect(problemWith({ items: { allOf: many } }, items)).toContain('0: must be null')
    const distinct = JSON.stringify(Array.from({ length: 17_000 }, (_, n) => n))
    expect(problemWith({ allOf: Array(190).fill({ uniqueItems: true }) }, distinct)).toBeUndefined()
    expect(performance.now() - began).toBeLessThan(20_000)
  }, 30_000)

  it('lists several problems, each with its path', () => {
    const schema = {
      required: ['airline'],
      properties: {
        price: { type: 'number' },
        legs: { items: { enum: ['out', 'back'] } },
        'a/b': { anyOf: [{ type: 'null' }, false] },
      },
    }
    const problem = problemWith(schema, '{"price":"5","legs":["out","up"],"a/b":1}')
    expect(problem).toContain("the result: must have required property 'airline'")
    expect(problem).toContain('price: must be number')
    expect(problem).toContain('legs.1: must be equal to one of the allowed values: ["out","back"]')
    expect(problem).toContain('a/b: must fit one of 2 alternatives')
  })

  it('may have an id, however often it is given', () => {
    const schema = { $id: 'flight', id: 'flight', type: 'number', description: 'the price' }
    for (let times = 0; times < 2; times++) {
      expect(unusableSchema(schema)).toBeUndefined()
      expect(problemWith(schema, '5')).toBeUndefined()
    }
  })

  it('is reported briefly, whatever the result', () => {
    const schema = { additionalProperties: false, enum: ['x'.repeat(5000)] }
    const problem = problemWith(schema, JSON.stringify({ ['y'.repeat(5000)]: 1 }))!
    expect(problem.length).toBeLessThan(600)
    expect(problemWith({ uniqueItems: true }, `${'['.repeat(50_000)}${']'.repeat(50_000)}`)).toMatch(
      /too deep/,
    )
  })

  it('reads a fenced block with Windows line endings', () => {
    expect(problemWith({ type: 'number' }, 'So:\r\n```json\r\n5\r\n```\r\n')).toBeUndefined()
  })
})

describe('a report of completed that is blank (S2.11)', () => {
  it('gets a receipt that says what is missing, and is asked for again; at the limit its parent decides', async () => {
    team = await openTeam({ Master: {}, Worker: { parent: 'Master' } }, { tasks: { retries: 1 } })
    await team.rest('Master', 'Worker')
    await team.says('Master', 'delegate', { to: 'Worker', task: 'Find it' })
    expect(await report('  ')).toMatchObject({
      status: 'ok',
      result: 'task_1 is not done: the result is empty. Correct it and report again',
      details: { task_id: 'task_1', accepted: false, missing: 'the result is empty' },
    })
    await team.ends('Worker')
    expect(await report('')).toMatchObject({
      result: 'task_1 is not done: the result is empty. Its delegator decides',
      details: { state: 'waiting_parent' },
    })
  })
})
