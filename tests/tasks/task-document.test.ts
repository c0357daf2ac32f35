import { describe, expect, it } from 'vitest'
import { newTask } from '../../src/tasks/core/reduce.ts'
import { readTask, writeTask } from '../../src/tasks/store.ts'

const given = { id: 'task_1', delegator: 'Master', agent: 'Worker', text: 'Do it', createdAt: 7 }

describe('the document of a task', () => {
  it('reads what was written, with empty and other values', () => {
    const empty = newTask({ ...given, requiresResponse: false })
    expect(readTask({ document: writeTask(empty) })).toEqual(empty)
    const full = {
      ...newTask({
        ...given,
        context: { a: 0, b: [] },
        checks: ['tests'],
        judge: { kind: 'model', name: 'm' },
      }),
      parent: 'task_0',
      result: '',
      reason: 'x',
      remainingMs: 0,
      due: { kind: 'ack' as const, at: 0 },
      questions: [{ id: 'q', kind: 'query' as const, to: 'Master', text: '', expiresAt: null }],
      claim: { number: 1, result: '', step: 'checks' as const },
      held: { by: 'operator', reason: '', at: 0, state: 'executing' as const },
      unread: true,
      sent: 3,
    }
    expect(readTask({ document: writeTask(full) })).toEqual(full)
  })

  it('has an empty value for fields that an older document lacks', () => {
    expect(readTask({ document: '{"id":"task_1"}' })).toMatchObject({
      evidence: [],
      failures: [],
      claim: null,
      sent: 0,
      held: null,
    })
  })
})
