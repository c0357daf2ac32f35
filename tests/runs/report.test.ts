import { describe, expect, it } from 'vitest'
import { formatBytes } from '../../src/base/bytes.ts'
import { formatDuration } from '../../src/base/durations.ts'
import { htmlReport, markdownReport, type RunReport, reportOf } from '../../src/runs/report.ts'
import { createRun, formatSpent } from '../../src/runs/run.ts'
import { openBench } from './core/bench.ts'
import { definePlan } from './define-plan.ts'

function exampleRun() {
  const bench = openBench(
    {
      collector: { retries: 1, instructions: 'Collect the numbers.' },
      writer: { depends_on: ['collector'] },
      extra: { retries: 0, on_error: 'skip' },
    },
    { name: 'Quarterly report', goal: 'Know the quarter.' },
  )
  bench.finish('collector', 1)
  bench.pass(1000)
  bench.tell({ type: 'retry_due', node: 'collector' })
  bench.start('collector')
  bench.pass(4000)
  bench.exit('collector', 0)
  bench.validate('collector')
  bench.tell({
    type: 'metered',
    node: 'collector',
    attempt: 2,
    spent: { inputTokens: 900, outputTokens: 100, cost: 0.0123 },
  })
  bench.finish('extra', 3)
  bench.start('writer')
  bench.pass(2000)
  bench.exit('writer', 0)
  bench.validate('writer')
  return bench
}

describe('the report of a run', () => {
  it('has timings, costs, attempts and summaries of each agent (issue 5)', () => {
    const bench = exampleRun()
    const report = reportOf(bench.run, bench.now)
    expect(report).toMatchObject({
      name: 'Quarterly report',
      outcome: 'partial',
      elapsedMs: 7000,
      workedMs: 6000,
      spent: { inputTokens: 900, outputTokens: 100, cost: 0.0123 },
      criticalPath: ['collector', 'writer'],
    })
    expect(report.agents[0]).toMatchObject({
      name: 'collector',
      state: 'completed',
      from: 0,
      to: 5000,
      workedMs: 4000,
      summary: 'collector is done',
      outputs: [{ path: 'outbox/data.json' }],
      attempts: [{ outcome: 'failed', why: 'it exited with 1' }, { outcome: 'completed' }],
    })
    expect(report.agents[2]).toMatchObject({ name: 'extra', state: 'skipped', summary: '' })
  })

  it('includes pauses between attempts in the longest chain', () => {
    const bench = openBench({
      again: { retries: 1 },
      busy: {},
      last: { depends_on: ['again', 'busy'] },
    })
    bench.finish('again', 1)
    bench.start('busy')
    bench.pass(3000)
    bench.exit('busy', 0)
    bench.validate('busy')
    bench.pass(1000)
    bench.tell({ type: 'retry_due', node: 'again' })
    bench.finish('again')
    bench.start('last')
    bench.pass(500)
    const report = reportOf(bench.run, bench.now)
    expect(report.agents.map(({ workedMs }) => workedMs)).toEqual([0, 3000, 500])
    expect(report.criticalPath).toEqual(['again', 'last'])
  })

  it('is available while the run continues', () => {
    const bench = openBench({ a: {}, b: { depends_on: ['a'] } })
    bench.start('a')
    bench.pass(500)
    expect(reportOf(bench.run, bench.now)).toMatchObject({
      outcome: null,
      agents: [{ workedMs: 500 }, { from: null }],
    })
  })

  it('in Markdown begins with the outcome and has a section for each agent', () => {
    const bench = exampleRun()
    const text = markdownReport(reportOf(bench.run, bench.now))
    expect(text).toContain('# Quarterly report\n')
    expect(text).toContain(
      '- Outcome: **partial**. Some agents were skipped; the others completed their work.',
    )
    expect(text).toContain('| collector | completed |  | 4.0 s | 2 | 0.0123 (1000 tokens) |')
    expect(text).toContain('- Longest chain: collector → writer')
    expect(text).toContain('\n\n```mermaid\nflowchart TD\n  n0["collector: completed"]:::completed\n')
    expect(text).toMatch(/\n {2}n0 --> n1\n[\s\S]*\n```\n\n\| agent /)
    expect(text).toContain('## collector\n\nCompleted.\n')
    expect(text).toContain('Summary:\n\n```text\ncollector is done\n```')
    expect(text).toContain('- outbox/data.json (12 bytes)')
    expect(text).toContain('Attempts that failed:\n\n- 1: it exited with 1')
    expect(text).toContain('Skipped: it exited with 3; its only attempt failed')
  })

  it('draws no graph in Markdown that is too large to read', () => {
    const drawn = (count: number) => {
      const agents = Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, {}]))
      const bench = openBench(agents)
      return markdownReport(reportOf(bench.run, bench.now)).includes('mermaid')
    }
    expect([drawn(100), drawn(101)]).toEqual([true, false])
  })

  it('as a page loads nothing else, and forbids the browser to', () => {
    const bench = exampleRun()
    const page = htmlReport(reportOf(bench.run, bench.now))
    expect(page).toMatch(/^<!doctype html>\n/)
    expect(page).toContain("default-src 'none'")
    expect(page).not.toMatch(/<script|<link|<img|<iframe|\bon\w+=|href=|src=|url\(|@import/i)
    expect(page.match(/<g class="node/g)).toHaveLength(3)
    expect(page.match(/<path class="edge/g)).toHaveLength(1)
    expect(page).toContain('collector is done')
  })
})

const HOSTILE = [
  '</title></style><script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  "' onmouseover='alert(1)",
  '```\n# Heading\n<b>bold</b>\n````\n| a | b |\n[click](javascript:alert(1))',
  'a\u202Eb\u0000c\x1b[31md\r\ne',
  '<!--',
  ']]>',
  '&lt;b&gt;',
  '{{7*7}}',
].join('\n')

/** Everything that others write, hostile at once. */
function hostileReport(): RunReport {
  const bench = exampleRun()
  const report = reportOf(bench.run, bench.now)
  return {
    ...report,
    name: HOSTILE,
    goal: HOSTILE,
    cancelled: HOSTILE,
    id: HOSTILE,
    criticalPath: [HOSTILE, HOSTILE],
    agents: report.agents.map((agent) => ({
      ...agent,
      reason: HOSTILE,
      objective: HOSTILE,
      summary: HOSTILE,
      outputs: [{ path: HOSTILE, bytes: 1, sha256: HOSTILE }],
      attempts: agent.attempts.map((attempt) => ({ ...attempt, why: HOSTILE, outcome: 'failed' as const })),
    })),
  }
}

describe('hostile text', () => {
  it('stays text in the page', () => {
    const page = htmlReport(hostileReport())
    const tags = new Set([...page.matchAll(/<\/?([a-z0-9]+)/gi)].map(([, tag]) => tag!.toLowerCase()))
    for (const tag of ['script', 'img', 'b']) expect(tags).not.toContain(tag)
    const bare = page.replace(/"[^"]*"/g, '""')
    const tagged = [...bare.matchAll(/<[a-z0-9]+\s([^<>]*)>/gi)].map(([, attributes]) => attributes!)
    expect(tagged.length).toBeGreaterThan(20)
    expect(tagged.filter((attributes) => /\b(?:on\w+|src|href)\s*=/i.test(attributes))).toEqual([])
    // Every < begins a tag of ours: what others wrote has none left.
    const plain = htmlReport(reportOf(exampleRun().run, 8000))
    const shape = (text: string) => new Set([...text.matchAll(/<[!/a-z][^\s>]*/gi)].map(([open]) => open))
    expect(shape(page).difference(shape(plain))).toEqual(new Set())
    expect(page).not.toMatch(/[\x00-\x08\x0b-\x1f\u202e]/)
  })

  it('stays inside its fence, its cell and its line in Markdown', () => {
    const text = markdownReport(hostileReport())
    const outside = text.replace(/^(`{3,})(?:text|mermaid)\n[\s\S]*?\n\1$/gm, '')
    expect(outside.match(/^#+ .*$/gm)!.map((line) => line.slice(0, 6))).toEqual([
      '# \\</t',
      '## col',
      '## wri',
      '## ext',
    ])
    expect(outside).not.toMatch(/(?<!\\)[<[`]/)
    const rows = outside.split('\n').filter((line) => line.startsWith('|'))
    for (const row of rows) expect(row.match(/(?<!\\)\|/g)).toHaveLength(7)
    expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f\u202e]/)
  })

  it('as the name of an agent stays text in the picture', () => {
    const plan = definePlan({ agents: { a: {} } })
    const named = { ...plan, agents: [{ ...plan.agents[0]!, name: '<script>alert("x")</script>' }] }
    const page = htmlReport(reportOf(createRun({ id: 'run_1', plan: named, now: 0 }), 0))
    expect(page).toContain('&lt;script&gt;')
    expect(page).not.toContain('<script')
  })
})

describe('numbers for people', () => {
  it('are short', () => {
    expect([0, 999, 1500, 59_000, 61_000, 3_720_000].map(formatDuration)).toEqual([
      '0 ms',
      '999 ms',
      '1.5 s',
      '59 s',
      '1 min 1 s',
      '1 h 2 min',
    ])
    expect([12, 2048, 5 * 1024 ** 2].map(formatBytes)).toEqual(['12 bytes', '2 KiB', '5 MiB'])
    expect(formatSpent({ inputTokens: 0, outputTokens: 0, cost: null })).toBe('')
    expect(formatSpent({ inputTokens: 5, outputTokens: 5, cost: null })).toBe('10 tokens')
  })
})
