import { describe, expect, it } from 'vitest'
import { openBench } from './bench.ts'

type Bench = ReturnType<typeof openBench>

function failOnce(bench: Bench, name = 'a') {
  bench.start(name)
  bench.exit(name, 1)
}

/** Through the pause, to the next attempt. */
function retry(bench: Bench, name = 'a') {
  bench.pass(bench.node(name).due!.at - bench.now)
  bench.tell({ type: 'retry_due', node: name })
}

describe('retry', () => {
  it('continues after 8 and 16 s if the plan has more retries (C7)', () => {
    const bench = openBench({ a: { retries: 6 } })
    const pauses: number[] = []
    for (let attempt = 1; attempt <= 6; attempt++) {
      failOnce(bench)
      pauses.push(bench.node('a').due!.at - bench.now)
      retry(bench)
    }
    expect(pauses.slice(3)).toEqual([8000, 16_000, 16_000])
  })

  it('gives the next attempt the results of the previous one, and prepares its inbox again (S4.11)', () => {
    const bench = openBench({ a: {} })
    failOnce(bench)
    retry(bench)
    bench.take()
    bench.copied('a')
    expect(bench.taken('start_attempt')).toMatchObject([
      { attempt: 2, before: { attempt: 1, why: 'it exited with 1' } },
    ])
  })

  it('follows work that is not accepted, with the evidence (C22)', () => {
    const bench = openBench({ a: {} })
    bench.start('a')
    bench.exit('a', 0)
    bench.validate('a', false)
    expect(bench.node('a')).toMatchObject({ state: 'retrying', reason: 'summary.md is missing' })
    expect(bench.node('a').attempts[0]).toMatchObject({ outcome: 'failed', evidence: [{ step: 'outputs' }] })
  })

  it('waits until the previous attempt is gone: a workspace never has two', () => {
    const bench = openBench({ a: {} })
    bench.start('a')
    bench.status('a', 'failed')
    expect(bench.taken('stop_attempt')).toMatchObject([{ attempt: 1, finished: false }])
    retry(bench)
    expect(bench.node('a')).toMatchObject({ state: 'retrying', alive: true, due: null })
    bench.exit('a', null, { signal: 'SIGKILL' })
    expect(bench.node('a')).toMatchObject({ state: 'preparing', alive: false })
  })

  it('follows inputs that could not be copied', () => {
    const bench = openBench({ a: { retries: 1 } })
    const fail = (recoverable: boolean) =>
      bench.tell({
        type: 'copy_failed',
        node: 'a',
        preparation: bench.node('a').preparations,
        why: 'the disk is full',
        recoverable,
      })
    fail(true)
    expect(bench.node('a').state).toBe('retrying')
    retry(bench)
    fail(true)
    expect(bench.node('a')).toMatchObject({ state: 'failed', attempts: [] })
  })
})

describe('a timer', () => {
  it('ends an attempt that takes too long, counted from its start', () => {
    const bench = openBench({ a: { timeout: '1m' } })
    bench.copied('a')
    bench.pass(30_000)
    bench.tell({ type: 'started', node: 'a', attempt: 1 })
    bench.pass(59_999)
    expect(bench.tell({ type: 'timed_out', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    bench.pass(1)
    bench.tell({ type: 'timed_out', node: 'a' })
    expect(bench.node('a')).toMatchObject({
      state: 'retrying',
      reason: 'it timed out after 60 s',
      alive: true,
    })
  })

  it('ends an attempt that gives no sign of life; each sign restarts it (C22)', () => {
    const bench = openBench({ a: { stall_timeout: '20s' } })
    bench.start('a')
    bench.pass(19_000)
    bench.tell({ type: 'active', node: 'a', attempt: 1 })
    bench.pass(19_000)
    expect(bench.tell({ type: 'stalled', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    bench.status('a', 'running')
    bench.pass(20_000)
    bench.tell({ type: 'stalled', node: 'a' })
    expect(bench.node('a')).toMatchObject({ state: 'retrying', reason: 'no sign of life for 20 s' })
  })

  it('does not watch a command for signs of life unless the plan asks for it', () => {
    const bench = openBench({ a: {} })
    bench.start('a')
    expect(bench.node('a').stallAt).toBeNull()
  })

  it('leaves at least ten seconds after a restart of the service', () => {
    const bench = openBench({ a: { stall_timeout: '20s', timeout: '30s' } })
    bench.start('a')
    bench.pass(3_600_000)
    bench.tell({ type: 'restarted' })
    expect(bench.tell({ type: 'stalled', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    expect(bench.tell({ type: 'timed_out', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    bench.pass(9999)
    expect(bench.tell({ type: 'timed_out', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    bench.pass(1)
    expect(bench.tell({ type: 'timed_out', node: 'a' }).ok).toBe(true)
  })

  it('keeps the rest of the time of an attempt', () => {
    const bench = openBench({ a: { timeout: '30s' } })
    bench.start('a')
    bench.pass(15_000)
    bench.tell({ type: 'restarted' })
    bench.pass(14_000)
    bench.tell({ type: 'restarted' })
    bench.pass(9000)
    expect(bench.tell({ type: 'timed_out', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    // Ten seconds at least: what it did meanwhile must be known before.
    bench.pass(1000)
    expect(bench.tell({ type: 'timed_out', node: 'a' }).ok).toBe(true)
  })
})

describe('an attempt lost with the machine', () => {
  it('does not count as a failure the first three times', () => {
    const bench = openBench({ a: { retries: 0 } })
    for (let loss = 1; loss <= 3; loss++) {
      bench.start('a')
      bench.exit('a', null, { lost: true })
      expect(bench.node('a')).toMatchObject({ state: 'preparing', losses: loss, tries: 0 })
    }
    bench.start('a')
    bench.exit('a', null, { lost: true })
    expect(bench.node('a').state).toBe('failed')
  })
})

describe('escalate', () => {
  const escalating = () => {
    const bench = openBench({ a: { retries: 0, on_error: 'escalate' }, b: { depends_on: ['a'] } })
    failOnce(bench)
    return bench
  }

  it('asks a person, who has a day (S4.12, C9)', () => {
    const bench = escalating()
    expect(bench.node('a').state).toBe('asking')
    expect(bench.taken('ask_person')).toMatchObject([
      { ask: 1, awaits: true, expiresAt: bench.now + 24 * 3_600_000 },
    ])
  })

  it.each([
    ['retry', 'preparing'],
    ['fixed', 'preparing'],
    ['skip', 'skipped'],
    ['fail', 'failed'],
  ] as const)('does what the person decides: %s', (decision, state) => {
    const bench = escalating()
    expect(bench.reduce('a', decision).ok).toBe(true)
    expect(bench.node('a').state).toBe(state)
    expect(bench.reduce('a', decision).ok).toBe(false)
  })

  it('gives all retries again after a decision to retry', () => {
    const bench = openBench({ a: { retries: 1, on_error: 'escalate' } })
    failOnce(bench)
    retry(bench)
    failOnce(bench)
    bench.reduce('a', 'retry')
    failOnce(bench)
    expect(bench.node('a').state).toBe('retrying')
  })

  it('fails when nobody decides in time, and withdraws the question', () => {
    const bench = escalating()
    bench.take()
    expect(bench.tell({ type: 'ask_expired', node: 'a' })).toMatchObject({ refusal: { code: 'STALE' } })
    bench.pass(24 * 3_600_000)
    bench.tell({ type: 'ask_expired', node: 'a' })
    expect(bench.states()).toEqual({ a: 'failed', b: 'failed' })
    expect(bench.taken('withdraw')).toMatchObject([{ node: 'a', ask: 1 }])
  })

  it('waits without limit if the plan says so', () => {
    const bench = openBench({ a: { retries: 0, on_error: 'escalate' } }, { ask_timeout: 'off' })
    failOnce(bench)
    expect(bench.node('a')).toMatchObject({ state: 'asking', due: null })
  })
})

describe('fix and retry', () => {
  const withFixer = (max_fixes = 1) => {
    const bench = openBench(
      { a: { retries: 0, on_error: 'fix', fixer: 'mender', max_fixes } },
      { fixers: { mender: { command: 'fix' } } },
    )
    failOnce(bench)
    return bench
  }

  it('asks a person when the fixer fails, and when its fixes are used up', () => {
    const failing = withFixer(2)
    failing.tell({ type: 'fixer_done', node: 'a', fix: 1, fixed: false, why: 'no idea' })
    expect(failing.node('a')).toMatchObject({ state: 'asking', reason: expect.stringContaining('no idea') })

    const used = withFixer(1)
    used.tell({ type: 'fixer_done', node: 'a', fix: 1, fixed: true, why: '' })
    failOnce(used)
    expect(used.node('a').state).toBe('asking')
  })

  it('asks a person if there is no fixer', () => {
    const bench = openBench({ a: { retries: 0, on_error: 'fix' } })
    failOnce(bench)
    expect(bench.node('a').state).toBe('asking')
    bench.reduce('a', 'fixed')
    expect(bench.node('a').state).toBe('preparing')
  })

  it('also follows errors that a retry would not solve', () => {
    const bench = openBench(
      { a: { on_error: 'fix', fixer: 'mender' } },
      { fixers: { mender: { command: 'fix' } } },
    )
    bench.start('a')
    bench.status('a', 'failed', false)
    expect(bench.node('a').state).toBe('fixing')
    expect(bench.tell({ type: 'fixer_done', node: 'a', fix: 2, fixed: true, why: '' })).toMatchObject({
      refusal: { code: 'STALE' },
    })
  })
})
