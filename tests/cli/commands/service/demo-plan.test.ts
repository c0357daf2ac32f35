import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { sharedTeam } from '../../orc.ts'

const team = sharedTeam()

describe('the plan of the demo', () => {
  it('runs the packaged example to its report, with one agent at its second attempt', async () => {
    const { child, shows, ended } = team.begin('demo')
    await shows('Now a plan')
    await shows('completed (6 completed)')
    child.kill('SIGINT')
    const { code, out } = await ended
    expect(code).toBe(0)
    expect(out.match(/\w+ is running \(attempt 2\)/g)).toEqual(['second is running (attempt 2)'])
    const folder = join(team.state, 'demo', 'plan')
    const plan = readFileSync(join(folder, 'plan.yaml'), 'utf8')
    expect(plan).toBe(readFileSync('examples/words/plan.yaml', 'utf8'))
    const report = join(folder, 'runs', 'run_1', 'report', 'outbox', 'report.md')
    expect(readFileSync(report, 'utf8')).toContain('Most used: ')
  }, 60_000)
})
