import { describe, expect, it } from 'vitest'
import { agent, openTestEngine } from '../harness/engine.ts'

describe('tasks in commands of one batch', () => {
  it('are visible to later commands of the batch: an agent delegates as part of the task that it just got', async () => {
    const agents = { Top: {}, Master: { parent: 'Top' }, Worker: { parent: 'Master' } }
    const engine = await openTestEngine({ agents })
    try {
      const delegate = (from: string, to: string) => engine.say(from, 'delegate', { to, task: 'Do it' })
      await delegate('Master', 'Worker')
      await delegate('Master', 'Worker')
      // In one batch: the agent is free when the first command runs.
      await Promise.all([
        delegate('Master', 'Worker'),
        delegate('Top', 'Master'),
        delegate('Master', 'Worker'),
      ])
      await delegate('Master', 'Worker')
      await engine.say('Master', 'report', { status: 'completed', result: 'done', in_response_to: 'task_4' })
      await delegate('Master', 'Worker')
      const parents = await engine.store.all('SELECT parent FROM tasks ORDER BY id')
      expect(parents).toEqual([null, null, null, null, 4, 4, null].map((parent) => ({ parent })))
    } finally {
      await engine.close()
    }
  })

  it('are unchanged by a command that fails: the others of the batch act on the stored state', async () => {
    const engine = await openTestEngine({ agents: { Master: {}, Worker: { parent: 'Master' } } })
    try {
      await engine.say('Master', 'delegate', { to: 'Worker', task: 'Do it' })
      const report = { status: 'completed', in_response_to: 'task_1', result: 'done' }
      // In one batch, which the last work rolls back; its works then run one by one.
      const [done, failed] = await Promise.allSettled([
        engine.handle(agent('Worker'), { type: 'report', fields: report }),
        engine.engine.store.write(() => {
          throw new Error('on purpose')
        }),
      ])
      expect(failed.status).toBe('rejected')
      expect(done).toMatchObject({ value: { details: { state: 'completed' } } })
      expect(engine.types().filter((type) => type === 'task.completed')).toHaveLength(1)
      const again = await engine.say('Worker', 'report', report)
      expect(again).toMatchObject({ status: 'error' })
    } finally {
      await engine.close()
    }
  })
})
