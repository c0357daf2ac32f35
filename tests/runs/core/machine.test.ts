import { describe, expect, it } from 'vitest'
import { timersIn } from '../../../src/runs/core/events-and-effects.ts'
import { openBench } from './bench.ts'

const after = (agent: string, on_failure?: 'fail' | 'skip' | 'proceed') => ({
  depends_on: [{ agent, ...(on_failure && { on_failure }) }],
})

describe('a run', () => {
  it('hands on outputs when they are validated, not when an agent reports completion (issue 5)', () => {
    const bench = openBench({
      collector: {},
      writer: {
        depends_on: [{ agent: 'collector', outputs: ['outbox/data.json'], copy_to: 'inbox/source_data/' }],
      },
    })
    bench.start('collector')
    bench.status('collector', 'running')
    bench.take()
    bench.status('collector', 'completed')
    expect(bench.take().map(({ type }) => type)).toEqual(['stop_attempt', 'validate'])
    expect(bench.node('writer').state).toBe('waiting')
    bench.validate('collector')
    expect(bench.taken('prepare')).toMatchObject([
      {
        node: 'writer',
        sources: [
          {
            agent: 'collector',
            outputs: ['outbox/data.json'],
            copyTo: 'inbox/source_data',
            outputsHash: 'out collector',
          },
        ],
        missing: [],
      },
    ])
  })

  it('starts an agent only after its inputs are copied (S4.14)', () => {
    const bench = openBench({ a: {} })
    expect(bench.taken('start_attempt')).toEqual([])
    bench.copied('a')
    expect(bench.taken('start_attempt')).toMatchObject([
      { node: 'a', attempt: 1, before: null, key: 'run_1/a/start/1' },
    ])
  })

  it('fails an agent that exits while its status.json says running', () => {
    const bench = openBench({ a: { retries: 0 } })
    bench.start('a')
    bench.status('a', 'running')
    bench.exit('a', 0)
    expect(bench.node('a')).toMatchObject({
      state: 'failed',
      reason: 'it exited without reporting completion; its only attempt failed',
    })
    const other = openBench({ a: { retries: 0 } })
    other.start('a')
    other.status('a', 'running')
    const why = 'status.json is not complete JSON'
    other.tell({ type: 'exited', node: 'a', attempt: 1, code: 0, signal: null, lost: false, why })
    expect(other.node('a').reason).toContain('it exited without reporting completion: status.json is not')
  })

  it('does not end before the last process has ended', () => {
    const bench = openBench({ a: {} })
    bench.start('a')
    bench.status('a', 'completed')
    bench.validate('a')
    expect(bench.node('a').state).toBe('completed')
    expect(bench.run.head.outcome).toBeNull()
    bench.exit('a', 0)
    expect(bench.run.head.outcome).toBe('completed')
    expect(bench.taken('write_report')).toMatchObject([{ key: 'run_1/report/1' }])
    bench.tell({ type: 'report_written', round: 1 })
    expect(bench.run.head.reportPending).toBe(false)
  })

  it('keeps its concurrency, first come, first served, and counts live processes', () => {
    const bench = openBench({ a: {}, b: {}, c: {} }, { concurrency: 1 })
    bench.start('a')
    bench.status('a', 'completed')
    bench.validate('a')
    expect(bench.states()).toEqual({ a: 'completed', b: 'ready', c: 'ready' })
    bench.exit('a', 0)
    expect(bench.states()).toEqual({ a: 'completed', b: 'preparing', c: 'ready' })
  })

  it('stores the spending of each attempt, even if it is known late', () => {
    const bench = openBench({ a: {}, b: {} })
    bench.finish('a')
    const spent = { inputTokens: 10, outputTokens: 5, cost: 0.02 }
    expect(bench.tell({ type: 'metered', node: 'a', attempt: 1, spent }).ok).toBe(true)
    expect(bench.node('a').attempts[0]!.spent).toEqual(spent)
    expect(bench.tell({ type: 'metered', node: 'a', attempt: 2, spent }).ok).toBe(false)
  })
})

describe('an edge to an agent that failed', () => {
  it('gives a dependent that proceeds none of its outputs, and lists it as missing', () => {
    const bench = openBench({ a: { retries: 0 }, b: after('a', 'proceed') })
    bench.finish('a', 1)
    expect(bench.taken('prepare').at(-1)).toMatchObject({ node: 'b', sources: [], missing: ['a'] })
  })

  it('fails the dependent without waiting for its other dependencies', () => {
    const bench = openBench({
      a: { retries: 0 },
      b: {},
      c: { depends_on: [{ agent: 'a' }, { agent: 'b', on_failure: 'skip' }] },
      d: after('c', 'proceed'),
    })
    bench.finish('a', 1)
    expect(bench.states()).toEqual({ a: 'failed', b: 'preparing', c: 'failed', d: 'preparing' })
    expect(bench.node('c')).toMatchObject({ reason: 'a failed', attempts: [] })
  })

  it('with two entries has the stricter policy', () => {
    const bench = openBench({
      a: { retries: 0 },
      b: {
        depends_on: [
          { agent: 'a', outputs: ['outbox/x'], copy_to: 'inbox/x', on_failure: 'proceed' },
          { agent: 'a', outputs: ['outbox/y'], copy_to: 'inbox/y', on_failure: 'skip' },
        ],
      },
    })
    bench.finish('a', 1)
    expect(bench.node('b').state).toBe('skipped')
  })
})

describe('the outcome', () => {
  it('is completed, partial, failed or cancelled, depending on the agents', () => {
    const done = openBench({ a: {} })
    done.finish('a')
    expect(done.run.head.outcome).toBe('completed')

    const partial = openBench({ a: { retries: 0, on_error: 'skip' }, b: {} })
    partial.finish('a', 1)
    partial.finish('b')
    expect(partial.run.head.outcome).toBe('partial')

    const failed = openBench({ a: { retries: 0 }, b: after('a', 'proceed') })
    failed.finish('a', 1)
    failed.finish('b')
    expect(failed.run.head.outcome).toBe('failed')
  })
})

describe('cancelling', () => {
  it('ends waiting agents at once, stops running ones, and ends the run when all have stopped', () => {
    const bench = openBench({ a: {}, b: after('a'), c: {}, d: { retries: 0, on_error: 'escalate' } })
    bench.start('a')
    bench.finish('d', 1)
    bench.take()
    bench.tell({ type: 'cancelled', by: 'ada', reason: 'wrong plan' })
    expect(bench.states()).toEqual({ a: 'cancelled', b: 'cancelled', c: 'cancelled', d: 'cancelled' })
    expect(bench.take().map(({ type }) => type)).toEqual(['withdraw', 'stop_attempt'])
    expect(timersIn(bench.run)).toEqual([])
    expect(bench.run.head.outcome).toBeNull()
    expect(bench.tell({ type: 'cancelled', by: 'ada', reason: 'again' })).toMatchObject({
      refusal: { code: 'DUPLICATE' },
    })
    bench.exit('a', null, { signal: 'SIGTERM' })
    expect(bench.run.head.outcome).toBe('cancelled')
    expect(bench.node('a').attempts[0]).toMatchObject({ outcome: 'cancelled', why: 'wrong plan' })
  })

  it('stops a fixer as well', () => {
    const bench = openBench(
      { a: { retries: 0, on_error: 'fix', fixer: 'mender' } },
      { fixers: { mender: { command: 'fix' } } },
    )
    bench.finish('a', 1)
    bench.take()
    bench.tell({ type: 'cancelled', by: 'ada', reason: 'enough' })
    expect(bench.taken('stop_fix')).toMatchObject([{ node: 'a', fix: 1 }])
    bench.tell({ type: 'fixer_done', node: 'a', fix: 1, fixed: true, why: '' })
    expect(bench.run.head.outcome).toBe('cancelled')
  })

  it('happens when the whole run times out, which is a failure', () => {
    const bench = openBench({ a: {} }, { timeout: '1m' })
    expect(timersIn(bench.run)).toContainEqual({ at: 61_000, event: { type: 'run_timed_out' } })
    bench.start('a')
    expect(bench.tell({ type: 'run_timed_out' })).toMatchObject({ refusal: { code: 'STALE' } })
    bench.pass(60_000)
    bench.tell({ type: 'run_timed_out' })
    bench.exit('a', null)
    expect(bench.run.head).toMatchObject({ outcome: 'failed', cancelled: { by: 'orchestrator' } })
  })
})

describe('an event that is late, duplicate or about an unknown agent', () => {
  it('is refused and changes nothing', () => {
    const bench = openBench({ a: { retries: 1 } })
    const first = bench.node('a').preparations
    bench.start('a')
    const of = { node: 'a', attempt: 1 }
    expect(
      bench.tell({
        type: 'inputs_copied',
        node: 'a',
        preparation: first,
        inputsHash: 'x',
        outputsHash: null,
      }),
    ).toMatchObject({ refusal: { code: 'STALE' } })
    expect(bench.tell({ type: 'started', ...of })).toMatchObject({ refusal: { code: 'DUPLICATE' } })
    expect(bench.tell({ type: 'begun' })).toMatchObject({ refusal: { code: 'DUPLICATE' } })
    bench.exit('a', 1)
    bench.pass(1000)
    bench.tell({ type: 'retry_due', node: 'a' })
    bench.start('a')
    const before = bench.node('a')
    expect(bench.tell({ type: 'exited', ...of, code: 0, signal: null, lost: false, why: '' })).toMatchObject({
      refusal: { code: 'STALE' },
    })
    expect(
      bench.tell({ type: 'status', ...of, state: 'completed', progress: null, error: null }),
    ).toMatchObject({ refusal: { code: 'STALE' } })
    expect(bench.tell({ type: 'active', node: 'x', attempt: 1 })).toMatchObject({
      refusal: { code: 'UNKNOWN_NODE' },
    })
    expect(bench.node('a')).toBe(before)
    bench.exit('a', 0)
    bench.validate('a')
    expect(bench.tell({ type: 'cancelled', by: 'ada', reason: '' })).toMatchObject({
      refusal: { code: 'RUN_ENDED' },
    })
  })

  it('is refused before the run has begun', () => {
    const bench = openBench({ a: {} }, {}, { begin: false })
    expect(bench.tell({ type: 'cancelled', by: 'ada', reason: '' })).toMatchObject({
      refusal: { code: 'STALE' },
    })
  })
})
