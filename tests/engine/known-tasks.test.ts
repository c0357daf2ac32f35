import { describe, expect, it } from 'vitest'
import { createKnownTasks } from '../../src/engine/tasks/known.ts'
import type { Task } from '../../src/model/task.ts'
import type { SqlValue, Tx } from '../../src/store/store.ts'
import { readTask } from '../../src/store/task-document.ts'
import { newTask } from '../../src/tasks/new-task.ts'
import { agent, openBoard } from './harness.ts'

const task = (more: Partial<Task> = {}): Task => ({
  ...newTask({ id: 'task_1', delegator: 'Master', agent: 'Worker', text: 'Do it', createdAt: 7 }),
  ...more,
})

/** A transaction that writes nowhere. */
function begin(lockRow = '') {
  const effects: (() => void)[] = []
  const written: (readonly SqlValue[])[] = []
  const tx = {
    now: 7,
    lockRow,
    run: (_: string, params: readonly SqlValue[]) => void written.push(params),
    afterCommit: (effect: () => void) => void effects.push(effect),
  } as unknown as Tx
  const commit = () => {
    for (const effect of effects) effect()
  }
  return { tx, written, commit }
}

describe('what is known of a task', () => {
  it('is what was stored last, from the commit on', () => {
    const known = createKnownTasks()
    const { tx, written, commit } = begin()
    known.insert(tx, task())
    known.update(tx, task(), task({ version: 1, state: 'executing' }))
    expect(known.find(tx, 'task_1')).toBeUndefined()
    commit()
    const found = known.find(begin().tx, 'task_1')
    expect(found).toMatchObject({ version: 1, state: 'executing' })
    expect(found).toEqual(readTask(written[1]!.find((value) => String(value).startsWith('{')) as string))
  })

  it('is nothing where the last of two changes in one transaction is too large to be kept', () => {
    const known = createKnownTasks()
    const { tx, commit } = begin()
    known.insert(tx, task())
    known.update(tx, task(), task({ version: 1, state: 'completed', result: 'x'.repeat(5000) }))
    commit()
    expect(known.find(begin().tx, 'task_1')).toBeUndefined()
  })

  it('is nothing after a change that was rolled back: it is read again', () => {
    const known = createKnownTasks()
    const first = begin()
    known.insert(first.tx, task())
    first.commit()
    known.update(begin().tx, task(), task({ version: 1 }))
    expect(known.find(begin().tx, 'task_1')).toBeUndefined()
  })

  it('is nothing where another daemon may change it', () => {
    const known = createKnownTasks()
    const { tx, commit } = begin('FOR UPDATE')
    known.insert(tx, task())
    commit()
    expect(known.find(begin('FOR UPDATE').tx, 'task_1')).toBeUndefined()
  })

  it('is kept of the last ones, and of no large one', () => {
    const known = createKnownTasks()
    const { tx, commit } = begin()
    known.insert(tx, task({ text: 'x'.repeat(5000) }))
    for (let n = 2; n <= 2000; n++) known.insert(tx, task({ id: `task_${n}`, root: `task_${n}` }))
    commit()
    const found = (id: string) => known.find(begin().tx, id)?.id
    expect([found('task_1'), found('task_2'), found('task_2000')]).toEqual([
      undefined,
      undefined,
      'task_2000',
    ])
  })

  it('is that its agent has none, until it is given one: what it delegates then is part of that', async () => {
    const agents = { Top: {}, Master: { parent: 'Top' }, Worker: { parent: 'Master' } }
    const board = await openBoard({ agents })
    try {
      const delegate = (from: string, to: string) => board.say(from, 'delegate', { to, task: 'Do it' })
      await delegate('Master', 'Worker')
      await delegate('Master', 'Worker')
      // In one batch: it is free when the first of them looks.
      await Promise.all([
        delegate('Master', 'Worker'),
        delegate('Top', 'Master'),
        delegate('Master', 'Worker'),
      ])
      await delegate('Master', 'Worker')
      await board.say('Master', 'report', { status: 'completed', result: 'done', in_response_to: 'task_4' })
      await delegate('Master', 'Worker')
      const parents = await board.store.all('SELECT parent FROM tasks ORDER BY id')
      expect(parents).toEqual([null, null, null, null, 4, 4, null].map((parent) => ({ parent })))
    } finally {
      await board.close()
    }
  })

  it('does not outlive a batch that fails: the others in it act on what is stored', async () => {
    const board = await openBoard({ agents: { Master: {}, Worker: { parent: 'Master' } } })
    try {
      await board.say('Master', 'delegate', { to: 'Worker', task: 'Do it' })
      const report = { status: 'completed', in_response_to: 'task_1', result: 'done' }
      // In one batch, which is rolled back for its last work and run one by one.
      const [done, failed] = await Promise.allSettled([
        board.handle(agent('Worker'), { type: 'report', fields: report }),
        board.board.store.write(() => {
          throw new Error('on purpose')
        }),
      ])
      expect(failed.status).toBe('rejected')
      expect(done).toMatchObject({ value: { details: { state: 'completed' } } })
      expect(board.types().filter((type) => type === 'task.completed')).toHaveLength(1)
      const again = await board.say('Worker', 'report', report)
      expect(again).toMatchObject({ status: 'error' })
    } finally {
      await board.close()
    }
  })
})
