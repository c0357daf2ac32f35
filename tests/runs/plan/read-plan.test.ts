import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { planText, readPlan } from '../../../src/runs/plan/read-plan.ts'
import { MINIMAL_EXAMPLE, planJsonSchema } from '../../../src/runs/plan/validate-plan.ts'
import { describes, keysOf, type Node } from '../../config/schema-keys.ts'
import { definePlan } from '../define-plan.ts'

const problemsOf = (text: string, team = {}) => {
  const read = readPlan(text, { team })
  return read.ok
    ? []
    : read.error.map(({ line, column, path, message, hint }) => ({ line, column, path, message, hint }))
}
const messagesOf = (text: string, team = {}) => problemsOf(text, team).map(({ message }) => message)

describe('plan.yaml', () => {
  it('gets defaults for missing keys (C7, C22)', () => {
    const plan = definePlan({
      agents: {
        collector: { command: './collect.sh' },
        writer: { program: 'claude-code', instructions: 'Write it up.', depends_on: ['collector'] },
      },
    })
    expect(plan).toMatchObject({ name: 'plan', concurrency: 32, timeoutMs: null, askMs: 86_400_000 })
    const [collector, writer] = plan.agents
    expect(collector).toMatchObject({
      runner: { kind: 'command', command: './collect.sh' },
      template: 'generic',
      retries: 3,
      timeoutMs: 1_800_000,
      stallMs: null,
      onError: 'retry',
      judge: 'default',
      dependsOn: [],
    })
    expect(writer).toMatchObject({
      runner: { kind: 'program', program: 'claude-code', runtime: 'tmux' },
      instructions: { objective: 'Write it up.' },
      stallMs: 600_000,
      dependsOn: [
        { agent: 'collector', outputs: ['outbox/**'], copyTo: 'inbox/collector', onFailure: 'fail' },
      ],
    })
  })

  it('has a minimal form, which hints show', () => {
    expect(readPlan(MINIMAL_EXAMPLE).ok).toBe(true)
  })

  it('accepts all sections of instructions.md (S4.5)', () => {
    const plan = definePlan({
      agents: {
        a: {
          model: 'fast',
          instructions: {
            objective: 'Analyse.',
            context: 'Quarterly.',
            inputs_provided: ['`data.csv` - sales'],
            requirements: ['Be exact.'],
            success_criteria: ['All regions.'],
            constraints: 'One hour.',
            output_expectations: ['outbox/report.md'],
          },
          success_criteria: ['All regions.', 'No guesses.'],
        },
      },
    })
    expect(plan.agents[0]!.instructions).toEqual({
      objective: 'Analyse.',
      context: 'Quarterly.',
      inputsProvided: ['`data.csv` - sales'],
      requirements: ['Be exact.'],
      successCriteria: ['All regions.', 'No guesses.'],
      constraints: ['One hour.'],
      outputExpectations: ['outbox/report.md'],
    })
  })

  it('may leave the work to somebody outside who only uses files', () => {
    expect(definePlan({ agents: { a: {} } }).agents[0]!.runner).toEqual({ kind: 'files' })
  })

  it('puts inputs under their own names or under others', () => {
    const { inputs } = definePlan({
      agents: { a: { inputs: ['../docs/brief.md', 'data/', { path: 'x.csv', to: 'inbox/raw/y.csv' }] } },
    }).agents[0]!
    expect(inputs.map(({ to }) => to)).toEqual(['inbox/brief.md', 'inbox/data', 'inbox/raw/y.csv'])
  })

  it('is the same after writing and reading it', () => {
    const input = {
      name: 'x',
      agents: { a: { command: 'true' }, b: { depends_on: [{ agent: 'a', outputs: [] }] } },
    }
    const read = readPlan(planText(input))
    expect(read.ok && read.value).toEqual(definePlan(input))
  })
})

describe('a mistake in a plan', () => {
  it('is reported with its line, column and a hint', () => {
    expect(
      problemsOf(`agents:
  collector: { command: ./collect.sh, outputs: [outbox/data.json] }
  writer:
    command: ./write.sh
    depends_on:
      - { agent: colector }
      - { agent: collector, outputs: [outbox/data.csv], copy_to: ../elsewhere }
`),
    ).toEqual([
      {
        line: 6,
        column: 9,
        path: 'agents.writer.depends_on[0]',
        message: 'There is no agent "colector"',
        hint: 'Did you mean "collector"?',
      },
      {
        line: 7,
        column: 39,
        path: 'agents.writer.depends_on[1].outputs[0]',
        message: 'collector does not make outbox/data.csv',
        hint: 'It declares outbox/data.json.',
      },
      {
        line: 7,
        column: 66,
        path: 'agents.writer.depends_on[1].copy_to',
        message: '../elsewhere must not contain ".."',
        hint: 'Use a path inside the inbox, such as inbox/source_data/.',
      },
    ])
  })

  it.each<[string, string, string]>([
    [
      'a cycle',
      'agents: { a: { depends_on: [c] }, b: { depends_on: [a] }, c: { depends_on: [b] } }',
      'a waits for itself: a → c → b → a',
    ],
    ['a cycle of one', 'agents: { a: { depends_on: [a] } }', 'a waits for itself'],
    ['a name twice', 'agents: { a: {}, a: {} }', 'The key "a" appears twice, first in line 1'],
    ['names that differ by case', 'agents: { Ada: {}, ada: {} }', '"ada" is already taken by "Ada"'],
    ['a reserved name', 'agents: { operator: {} }', '"operator" is a reserved name'],
    ['a dependency twice', 'agents: { a: {}, b: { depends_on: [a, a] } }', 'a is listed twice'],
    ['no agents', 'agents: {}', 'The plan has no agents'],
    [
      'two runners',
      'agents: { a: { command: x, model: y } }',
      '"command" and "model" cannot both do the work',
    ],
    [
      'a runtime without a program',
      'agents: { a: { command: x, runtime: tmux } }',
      '"runtime" is for a program',
    ],
    [
      'a bad glob',
      'agents: { a: { outputs: ["outbox/[ab].md"] } }',
      'outbox/[ab].md has brackets, which are not supported; use ? for any one character',
    ],
    [
      'an output from the private area (S4.10)',
      'agents: { a: { outputs: [workspace/x] } }',
      'workspace/x is in workspace/, whose files are not outputs',
    ],
    [
      'an input with the name of a file of Orchub',
      'agents: { a: { inputs: [instructions.md] } }',
      'inbox/instructions.md is a file that Orchub writes',
    ],
    [
      'two inputs with the same target',
      'agents: { a: { inputs: [x/a.md, y/a.md] } }',
      'entry 1 already uses inbox/a.md',
    ],
    [
      'two outputs with the same target',
      'agents: { a: {}, b: {}, c: { depends_on: [{ agent: a, copy_to: inbox/x }, { agent: b, copy_to: inbox/x }] } }',
      'inbox/x/summary.md already comes from a',
    ],
    [
      'a copy outside the inbox',
      'agents: { a: {}, b: { depends_on: [{ agent: a, copy_to: outbox/x }] } }',
      'outbox/x is outside the inbox',
    ],
    [
      'an absolute copy',
      'agents: { a: {}, b: { depends_on: [{ agent: a, copy_to: /inbox/x }] } }',
      '/inbox/x must be relative',
    ],
    [
      'a fixer without on_error: fix',
      'agents: { a: { fixer: m } }\nfixers: { m: { command: x } }',
      '"fixer" needs "on_error: fix"',
    ],
    ['a fixer without a runner', 'agents: { a: {} }\nfixers: { m: {} }', 'No runner for "m"'],
    ['an unknown key', 'agents: { a: { needs: [b] } }', 'Unknown key "needs"'],
    [
      'a wrong policy',
      'agents: { a: {}, b: { depends_on: [{ agent: a, on_failure: ignore }] } }',
      '"on_failure" must be one of: fail, skip, proceed (got "ignore")',
    ],
    ['a number for a duration', 'agents: { a: { timeout: 30 } }', '"timeout" must be text (got 30)'],
    ['an empty file', '', 'The file is empty'],
    [
      'invalid YAML',
      'agents: {',
      'Flow map in block collection must be sufficiently indented and end with a }',
    ],
  ])('%s', (_, text, message) => {
    expect(messagesOf(text)).toContain(message)
  })

  it('suggests the key of Orchub for keys of other tools', () => {
    expect(problemsOf('agents: { a: { needs: [b], run: x } }\njobs: {}').map(({ hint }) => hint)).toEqual([
      'Here it is called "depends_on".',
      'Here it is called "command".',
      'Here it is called "agents".',
    ])
  })

  it('is not reported for outputs that need no declaration (S4.8)', () => {
    const plan = (outputs: string, wanted: string) =>
      messagesOf(
        `agents: { a: { outputs: [${outputs}] }, b: { depends_on: [{ agent: a, outputs: ["${wanted}"] }] } }`,
      )
    expect(plan('outbox/x.csv', 'outbox/summary.md')).toEqual([])
    expect(plan('outbox/x.csv', 'outbox/*.csv')).toEqual([])
    expect(plan('"outbox/*.csv"', 'x.csv')).toEqual([])
    expect(plan('', 'outbox/anything')).toEqual([])
    expect(plan('outbox/x.csv', 'outbox/*.json')).toEqual([])
    expect(plan('outbox/x.csv', 'outbox/*.txt')).toEqual(['a does not make outbox/*.txt'])
    // To name a folder is to name all in it.
    expect(plan('outbox/data/d.csv', 'outbox/data')).toEqual([])
    expect(plan('outbox/data', 'outbox/data/d.csv')).toEqual([])
    expect(plan('outbox/data/d.csv', 'outbox/dat')).toEqual(['a does not make outbox/dat'])
  })

  it('is a name that is missing in orc.yaml, if orc.yaml is known', () => {
    const text =
      'agents: { a: { agent: Wroker }, b: { model: fats, judge: smart }, c: { on_error: fix, fixer: x } }'
    expect(
      problemsOf(text, { agents: ['Worker'], models: ['fast'] }).map(
        ({ message, hint }) => `${message}. ${hint}`,
      ),
    ).toEqual([
      'There is no agent "Wroker" in orc.yaml. Did you mean "Worker"?',
      'There is no model "fats" in orc.yaml. Did you mean "fast"?',
      'There is no model or agent "smart" in orc.yaml. Add it to orc.yaml.',
      'There is no fixer "x". Name one of "fixers".',
    ])
    expect(messagesOf(text)).toEqual([])
  })

  it('is reported once for every group of cycles', () => {
    const text =
      'agents: { a: { depends_on: [b] }, b: { depends_on: [a] }, c: { depends_on: [d, a] }, d: { depends_on: [c] }, e: { depends_on: [d] } }'
    expect(messagesOf(text)).toEqual(['a waits for itself: a → b → a', 'c waits for itself: c → d → c'])
  })

  it('never throws for bytes that are not text', () => {
    const read = readPlan(Uint8Array.of(0x61, 0xff, 0xfe))
    expect(!read.ok && read.error[0]!.message).toBe('The file is not UTF-8')
    expect(messagesOf('agents: { a: { command: "" } }')).toEqual(['"command" must not be empty'])
  })
})

describe('plan.schema.json', () => {
  it('is what scripts/write-schema.ts writes', () => {
    const committed = readFileSync(new URL('../../../plan.schema.json', import.meta.url), 'utf8')
    expect(committed, 'run: node scripts/write-schema.ts').toBe(
      `${JSON.stringify(planJsonSchema(), null, 2)}\n`,
    )
  })

  it('describes every key, for editors to show', () => {
    const keys = keysOf(planJsonSchema() as Node)
    expect(keys.length).toBeGreaterThan(40)
    expect(keys.filter(([, node]) => !describes(node)).map(([path]) => path)).toEqual([])
  })

  it('closes every map but the settings of programs, so that editors flag a misspelt key', () => {
    const root = planJsonSchema() as Node
    const open = [['', root] as [string, Node], ...keysOf(root)]
      .flatMap(([path, node]) => [node, ...(node.anyOf ?? [])].map((form): [string, Node] => [path, form]))
      .filter(([, form]) => form.properties !== undefined && form.additionalProperties !== false)
    expect(open).toEqual([])
  })
})
