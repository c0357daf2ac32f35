import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startDemoPlan } from '../../../../src/cli/commands/service/demo.ts'
import { createClient } from '../../../../src/client/client.ts'
import { createTeamFolder, type TeamFolder } from '../../orc.ts'

let team: TeamFolder
beforeAll(() => {
  team = createTeamFolder()
})
afterAll(() => team.close())

describe('the plan of the demo', () => {
  it('runs the packaged example to its report, with one agent at its second attempt', async () => {
    const { url, operatorToken } = await team.start()
    const client = createClient({ url, token: operatorToken })
    const file = await startDemoPlan(client, team.state)
    const retried: string[] = []
    for await (const event of client.runEvents('run_1')) {
      if (event.type === 'node' && event.state === 'retrying') retried.push(event.node)
      if (event.type === 'end') expect(event.outcome).toBe('completed')
    }
    expect(retried).toEqual(['second'])
    expect(readFileSync(file, 'utf8')).toBe(readFileSync('examples/words/plan.yaml', 'utf8'))
    const report = join(file, '..', 'runs', 'run_1', 'report', 'outbox', 'report.md')
    expect(readFileSync(report, 'utf8')).toContain('Most used: ')
  })
})
