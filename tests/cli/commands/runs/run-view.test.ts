import { describe, expect, it } from 'vitest'
import {
  eventLine,
  type NodeShown,
  RUN_EXIT_CODE,
  type RunShown,
  runSummary,
  runView,
} from '../../../../src/cli/commands/runs/run-text.ts'
import { width } from '../../../../src/cli/output/layout.ts'
import { NODE_STATES, RUN_OUTCOMES } from '../../../../src/runs/run.ts'

const AT = '2026-01-15T10:30:00.000Z'

function node(name: string, more: Partial<NodeShown> = {}): NodeShown {
  const nothing = { attempt: 0, tries: 0, max_tries: 4, cached: false, outputs: [], attempts: [] }
  return {
    name,
    state: 'waiting',
    depends_on: [],
    waits_for: [],
    workspace: `/runs/${name}`,
    ...nothing,
    ...more,
  }
}

function run(nodes: NodeShown[], more: Partial<RunShown> = {}): RunShown {
  const counts = Object.fromEntries(
    NODE_STATES.map((state) => [state, nodes.filter((one) => one.state === state).length]),
  )
  return {
    id: 'run_1',
    name: 'A plan',
    state: 'running',
    folder: '/',
    place: '/runs/run_1',
    round: 1,
    by: 'operator',
    created_at: AT,
    elapsed_ms: 61_000,
    agents: nodes.length,
    counts,
    concurrency: 32,
    nodes,
    ...more,
  }
}

const working = { state: 'running', attempt: 1, tries: 1, started_at: AT, elapsed_ms: 4000 } as const
const wide = { width: 100, height: 24, sinceMs: 0 }

describe('the view of a run', () => {
  it('shows state, time, progress bar, step and what it waits for, for each agent', () => {
    const lines = runView(
      run([
        node('collector', {
          state: 'completed',
          elapsed_ms: 1200,
          started_at: AT,
          summary: '# Found it\nall',
        }),
        node('analyst', { ...working, step: 'reading', progress: { done: 3, total: 6 } }),
        node('second', { ...working, tries: 2 }),
        node('charts', { waits_for: ['analyst', 'second'] }),
        node('poet', { state: 'asking', request_id: 'req_4', reason: 'no rhyme' }),
        node('old', { state: 'completed', cached: true }),
        node('broken', { state: 'failed', reason: 'it exited with 1' }),
      ]),
      wide,
    ).split('\n')
    expect(lines[0]).toBe('A plan  run_1  2 of 7 done, 2 running, 1 asking, 1 failed, 1 min 1 s')
    expect(lines[1]).toMatch(/^✓ collector {2}completed {8}1\.2 s {2}Found it$/)
    expect(lines[2]).toMatch(/^▸ analyst {4}running .* 4 s {2}█████░░░░░ 3\/6 {2}reading$/)
    expect(lines[3]).toMatch(/attempt 2 of 4$/)
    expect(lines[4]).toMatch(/^· charts +waiting +for analyst, second$/)
    expect(lines[5]).toMatch(/asking +orc inbox shows req_4 {2}no rhyme$/)
    expect(lines[6]).toMatch(/^✓ old +as before$/)
    expect(lines[7]).toMatch(/^✗ broken +failed +it exited with 1$/)
  })

  it('says what blocks the run, and why there is no report', () => {
    const trouble = 'the disk is full: the run waits for free space'
    const stuck = run([node('a', working), node('b')], { trouble })
    const lines = runView(stuck, { ...wide, height: 5 }).split('\n')
    expect(lines).toHaveLength(4)
    expect(lines[1]).toContain(trouble)
    expect(runSummary(stuck).split('\n')[1]).toContain(trouble)
    const without = runSummary(run([node('a')], { state: 'completed', report_fault: 'no room' }))
    expect(without).toContain('could not write the report: no room')
  })

  it('says that all agents have ended and outputs are being gathered', () => {
    const ended = run([node('a', { state: 'completed' })], { gathering: true })
    expect(runSummary(ended)).toContain('is gathering its outputs: 1 of 1 agent done')
    expect(runView(ended, wide).split('\n')[0]).toContain('gathering outputs')
  })

  it('advances only the clocks of active agents between two reads', () => {
    const nodes = [node('a', working), node('b', { ...working, state: 'completed' })]
    const [head, a, b] = runView(run(nodes), { ...wide, sinceMs: 7100 }).split('\n')
    expect(head).toContain('1 min 8 s')
    expect(a).toContain('11 s')
    expect(b).toContain('4.0 s')
  })

  it.each([1, 5, 12, 20, 40, 59, 60, 80])('has no line wider than a screen of %d columns', (columns) => {
    const nodes = NODE_STATES.map((state) =>
      node(`agent-with-a-very-long-name-${state}`, {
        ...working,
        state,
        step: '漢字'.repeat(40),
        progress: { done: 1e9, total: 3 },
        reason: 'why '.repeat(50),
        summary: 'x'.repeat(300),
        waits_for: Array.from({ length: 20 }, (_, index) => `agent-${index}`),
      }),
    )
    const view = runView(run(nodes, { name: 'n'.repeat(150) }), { ...wide, width: columns })
    for (const line of view.split('\n')) expect(width(line)).toBeLessThanOrEqual(columns)
  })

  it('shows active agents first if not all fit, and counts the rest', () => {
    const nodes = [
      ...Array.from({ length: 500 }, (_, index) => node(`done-${index}`, { state: 'completed' })),
      node('busy', working),
      ...Array.from({ length: 400 }, (_, index) => node(`next-${index}`)),
    ]
    const lines = runView(run(nodes), { ...wide, height: 10 }).split('\n')
    expect(lines).toHaveLength(9)
    expect(lines[1]).toContain('busy')
    expect(lines.at(-1)).toBe('… and 894 more: 500 completed, 394 waiting')
  })

  it('cannot be controlled by text of agents', () => {
    const evil = 'a\u001b[2J\r\nb\u202e'
    const view = runView(run([node('a', { ...working, step: evil })], { name: evil }), wide)
    expect(view).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u202e]/)
    expect(view.split('\n')).toHaveLength(2)
  })
})

describe('a run as text', () => {
  it('has one line per event', () => {
    const about = { seq: 1, at: AT, run_id: 'run_1', text: 'in words' }
    expect(eventLine({ type: 'node', ...about, node: 'a', state: 'running', attempt: 2 })).toBe(
      '10:30:00 a running, attempt 2',
    )
    const failed = { type: 'node', ...about, node: 'a', state: 'failed', attempt: 1, reason: 'x\ny' } as const
    expect(eventLine(failed)).toBe('10:30:00 a failed: x y')
    const progress = {
      type: 'progress',
      ...about,
      node: 'a',
      attempt: 1,
      step: 'go',
      done: 1,
      total: 2,
    } as const
    expect(eventLine(progress)).toBe('10:30:00 a progress 1/2: go')
    expect(eventLine({ type: 'note', ...about })).toBe('10:30:00 in words')
    expect(eventLine({ type: 'end', ...about, outcome: 'failed', round: 1 })).toBeUndefined()
  })

  it('ends with the outputs and the cost of each agent', () => {
    const output = { path: 'outbox/a', bytes: 1, sha256: '' }
    const spent = { input_tokens: 10, output_tokens: 5, cost: 0.5 }
    const nodes = [
      node('a', { ...working, state: 'completed', outputs: [output], spent }),
      node('b', { state: 'skipped', reason: 'a person skipped it' }),
    ]
    const text = runSummary(run(nodes, { state: 'partial' }))
    expect(text).toContain('A plan (run_1) partial: 1 of 2 agents done, 1 min 1 s')
    expect(text).toMatch(/✓ a +completed +4\.0 s +1 output, 0\.5000 \(15 tokens\)/)
    expect(text).toMatch(/– b +skipped +a person skipped it/)
  })
})

it('`orc run` has an exit code for each outcome, and only 0 for success', () => {
  const codes = RUN_OUTCOMES.map((outcome) => RUN_EXIT_CODE[outcome])
  expect(new Set(codes).size).toBe(RUN_OUTCOMES.length)
  expect(RUN_OUTCOMES.filter((outcome) => RUN_EXIT_CODE[outcome] === 0)).toEqual(['completed'])
})
