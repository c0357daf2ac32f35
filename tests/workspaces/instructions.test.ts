import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PlanInstructions, WORKSPACE_TEMPLATES } from '../../src/runs/plan.ts'
import { parseErrorReport } from '../../src/workspaces/outbox.ts'
import {
  fillIn,
  formatInstructions,
  formatSkill,
  parseInstructions,
  SECTIONS,
  tidy,
} from '../../src/workspaces/skill-and-instructions.ts'
import { createWorkspace, prepareInbox } from '../../src/workspaces/workspaces.ts'
import { codesOf, expectOk, instructions, makePlace } from './harness.ts'

const example: PlanInstructions = {
  objective: '{Clear statement of what needs to be accomplished}',
  context: '{Background information relevant to the task}',
  inputsProvided: [
    '`input_file_1.txt` - Description of what this contains',
    '`data/` - Directory containing...',
  ],
  requirements: ['{Specific requirement 1}', '{Specific requirement 2}'],
  successCriteria: ['{Measurable outcome 1}', '{Measurable outcome 2}'],
  constraints: ['{Time/resource constraints}', '{Quality standards}'],
  outputExpectations: [
    'Place main deliverable in `outbox/{filename}`',
    'Include summary in `outbox/summary.md`',
  ],
}

const SEED = `# Task: {TASK_NAME}

## Objective
{Clear statement of what needs to be accomplished}

## Context
{Background information relevant to the task}

## Inputs Provided
- \`input_file_1.txt\` - Description of what this contains
- \`data/\` - Directory containing...

## Requirements
1. {Specific requirement 1}
2. {Specific requirement 2}

## Success Criteria
- [ ] {Measurable outcome 1}
- [ ] {Measurable outcome 2}

## Constraints
- {Time/resource constraints}
- {Quality standards}

## Output Expectations
- Place main deliverable in \`outbox/{filename}\`
- Include summary in \`outbox/summary.md\`
`

describe('instructions.md', () => {
  it('matches the specified text exactly, and is read back (S4.5)', () => {
    expect(formatInstructions('{TASK_NAME}', example)).toBe(SEED)
    expect(expectOk(parseInstructions(SEED))).toEqual({ task: '{TASK_NAME}', instructions: example })
  })

  it('has every section in order, even if it is empty', () => {
    const text = formatInstructions('x', { ...instructions, objective: '' })
    expect([...text.matchAll(/^## (.*)$/gm)].map(([, name]) => name)).toEqual([...SECTIONS])
    expect(expectOk(parseInstructions(text)).instructions).toEqual({ ...instructions, objective: '' })
  })

  it('reads what people write: other marks, ticks, line ends, order', () => {
    const text =
      '\ufeff# task: T\r\n## Requirements\r\n* one\r\n  more\r\n10) two\r\n## success criteria\r\n- [x] done\r\n+ not\r\n\r\n## Objective\r\nGo\r\n'
    expect(expectOk(parseInstructions(text))).toEqual({
      task: 'T',
      instructions: {
        ...instructions,
        objective: 'Go',
        requirements: ['one\nmore', 'two'],
        successCriteria: ['done', 'not'],
      },
    })
  })

  it('is distinguished from any other text', () => {
    expect(codesOf(parseInstructions('hello\n# World'))).toEqual(['invalid'])
  })

  it('does not let text pose as a section', () => {
    const piece = fc.constantFrom(
      '## Objective',
      '\\## Requirements',
      '## requirements  ',
      '# Task: other',
      'None.',
      '\\None.',
      '- item',
      '1. item',
      '[ ] box',
      '- [x] box',
      '```',
      '    code',
      '',
      ' ',
      '\r\n',
      'word',
      '`a`',
      '> q',
    )
    const text = fc
      .array(fc.oneof(piece, fc.string()), { maxLength: 6 })
      .map((lines) => tidy(lines.join('\n')))
    const items = fc.array(
      text.filter((item) => item !== ''),
      { maxLength: 12 },
    )
    const any: fc.Arbitrary<PlanInstructions> = fc.record({
      objective: text,
      context: text,
      inputsProvided: items,
      requirements: items,
      successCriteria: items,
      constraints: items,
      outputExpectations: items,
    })
    fc.assert(
      fc.property(any, (given) => {
        expect(expectOk(parseInstructions(formatInstructions('T', given)))).toEqual({
          task: 'T',
          instructions: given,
        })
      }),
      { numRuns: 300 },
    )
  })

  it('fills missing sections from the plan, and leaves the author’s own alone', () => {
    const known = {
      inputs: [{ to: 'inbox/a`b.csv', description: 'numbers' }, { to: 'inbox/x' }],
      dependencies: [{ agent: 'collector', copyTo: 'inbox/source/' }],
      outputs: [],
    }
    const filled = fillIn(instructions, known)
    expect(filled.inputsProvided).toEqual([
      '`` a`b.csv `` - numbers',
      '`x`',
      '`source/` - Outputs of collector',
    ])
    expect(filled.outputExpectations).toEqual([
      'Place main deliverable in `outbox/`',
      'Include summary in `outbox/summary.md`',
    ])
    expect(fillIn(example, known)).toEqual(example)
  })
})

describe('SKILL.md', () => {
  it.each(WORKSPACE_TEMPLATES)('of a %s agent has its objective and the protocol', (template) => {
    const text = formatSkill({ name: 'worker', template, objective: 'Do "it": all.' })
    expect(text).toMatch(/^---\nname: worker\ndescription: "Do \\"it\\": all."\n---\n/)
    expect(text).toContain('\n## Objective\nDo "it": all.\n')
    expect(text).toContain('\n## Communication Protocol\n')
    for (const word of [
      'inbox/instructions.md',
      'outbox/summary.md',
      'status.json',
      'error_report.md',
      'workspace/',
    ]) {
      expect(text).toContain(word)
    }
    expect(text).not.toContain('`worktree/`')
    expect(text).not.toContain('_to_')
  })

  it('mentions a worktree and messages if there are any', () => {
    const skill = {
      name: 'w',
      template: 'code',
      objective: 'x',
      hasWorktree: true,
      messages: '../messages/',
    } as const
    expect(formatSkill(skill)).toContain('`worktree/` is a git worktree on your own branch')
    expect(formatSkill(skill)).toContain('`w_to_{agent}_NNN.json`')
  })

  it('differs between the templates', () => {
    const texts = WORKSPACE_TEMPLATES.map((template) => formatSkill({ name: 'w', template, objective: 'x' }))
    expect(new Set(texts).size).toBe(WORKSPACE_TEMPLATES.length)
  })
})

describe('a new workspace', () => {
  const wanted = { name: 'worker', template: 'generic', objective: 'x' } as const

  it('has the specified layout (S4.1, S4.4)', async () => {
    const path = join(makePlace(), 'runs/1/worker')
    expectOk(await createWorkspace({ ...wanted, path }))
    expectOk(await prepareInbox({ workspace: path, task: 'x', instructions }))
    expect(JSON.parse(readFileSync(join(path, 'status.json'), 'utf8'))).toEqual({
      state: 'pending',
      started: null,
      completed: null,
      error: null,
      progress: { current_step: null, steps_completed: 0, total_steps: 0 },
      metrics: { files_processed: 0, outputs_generated: 0 },
    })
    expect(readdirSync(path).sort()).toEqual(['SKILL.md', 'inbox', 'outbox', 'status.json', 'workspace'])
    expect(readdirSync(join(path, '..'))).toEqual(['worker'])
  })

  it('replaces nothing, and refuses invalid names', async () => {
    const path = join(makePlace(), 'worker')
    expectOk(await createWorkspace({ ...wanted, path }))
    expect(codesOf(await createWorkspace({ ...wanted, path }))).toEqual(['exists'])
    for (const name of ['', '../x', 'a b', '.x', '1']) {
      expect(codesOf(await createWorkspace({ ...wanted, name, path: `${path}2` }))).toEqual(['bad_name'])
    }
  })
})

describe('error_report.md', () => {
  it('is read in the specified format (S4.11)', () => {
    const text = `# Error Report

## Error Type
ValidationError

## Description
Input file format was invalid. Expected CSV format but received JSON.

## Attempted Recovery
Tried to convert JSON to CSV but data structure incompatible.

## Suggested Resolution
Provide input as CSV with columns: id, name, value

## Partial Work
Any completed work before failure is in outbox/partial/
`
    expect(parseErrorReport(text)).toEqual({
      type: 'ValidationError',
      description: 'Input file format was invalid. Expected CSV format but received JSON.',
      attemptedRecovery: 'Tried to convert JSON to CSV but data structure incompatible.',
      suggestedResolution: 'Provide input as CSV with columns: id, name, value',
      partialWork: 'Any completed work before failure is in outbox/partial/',
    })
  })

  it('takes text without a heading as the description', () => {
    expect(parseErrorReport('It broke.\r\n### partial work:\r\nnone')).toEqual({
      type: '',
      description: 'It broke.',
      attemptedRecovery: '',
      suggestedResolution: '',
      partialWork: 'none',
    })
  })
})
