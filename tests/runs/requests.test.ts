import { expect, it, onTestFinished } from 'vitest'
import { createRunRequests } from '../../src/runs/requests.ts'
import { openRunTeam } from './harness.ts'

it('asks a question of a run once, however often its commit is retried', async () => {
  const team = await openRunTeam()
  onTestFinished(() => team.close())
  const requests = createRunRequests((text) => text)
  const effect = {
    type: 'ask_person' as const,
    node: 'one',
    text: 'What now?',
    awaits: true,
    expiresAt: null,
  }
  const ask = (number: number) =>
    team.store.write((tx) =>
      requests.ask(tx, { id: 'run-1', runFolder: '/runs/run-1' }, { ...effect, ask: number }),
    )
  await ask(1)
  await ask(1)
  await ask(2)
  const rows = await team.store.all<{ context: string; reason: string }>(
    'SELECT context, reason FROM human_requests ORDER BY id',
  )
  expect(rows.map(({ context }) => JSON.parse(context).ask)).toEqual([1, 2])
  expect(rows[0]!.reason).toContain('in /runs/run-1/_fixed/one, under their paths in the inbox')
  expect(team.types().filter((type) => type === 'human.asked')).toHaveLength(2)
})
