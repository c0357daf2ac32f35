import { describe, expect, it } from 'vitest'
import { servedTeam } from '../../orc.ts'

const team = servedTeam()

describe('tasks in the shell', () => {
  it('are delegated, asked about, answered and reported (S2.9)', async () => {
    expect(await team.orc('tasks')).toMatchObject({ code: 0, out: '', err: 'There are no open tasks.\n' })
    expect((await team.orc(['delegate', '--to', 'Worker', 'Find a flight'])).out).toContain(
      'task_1 is delegated to Worker',
    )
    expect((await team.orc('tasks')).out).toMatch(/^task_1 +operator → Worker +pending +Find a flight\n$/)
    expect((await team.orc('why task_1')).out).toContain('waits for Worker to take it')
    await team.orc('mailbox-check --agent Worker')
    expect((await team.orc('why task_1')).out).toContain('waits for Worker to report')

    await team.orc(['query', '--from', 'Worker', 'From where?'])
    expect((await team.orc('inbox')).out).toContain('From where?')
    const blank = await team.orc(['answer', 'req_1', ' '])
    expect(blank.code).not.toBe(0)
    expect(blank.err).toContain('From where?')
    expect((await team.orc(['answer', 'req_1', 'LAX'])).code).toBe(0)
    expect((await team.orc('mailbox-check --agent Worker')).out).toContain('LAX')

    await team.orc(['report', '--from', 'Worker', '--status', 'completed', 'Flight 7'])
    const { out } = await team.orc('task show task_1')
    expect(out).toContain('task_1 is completed: reported')
    expect(out).toContain('Result:\n    Flight 7')
    expect(out).toMatch(/Worker → operator +report +read/)
    expect((await team.orc('tasks --all --json')).json()).toMatchObject([
      { id: 'task_1', result: 'Flight 7' },
    ])
    expect((await team.orc('task show task_9')).err).toContain('There is no task task_9 for you')
  })

  it('lets an agent answer the query of another with orc answer (C11)', async () => {
    await team.orc(['delegate', '--from', 'Master', '--to', 'Worker', 'Find a hotel'])
    const [asked] = (await team.orc(['query', '--from', 'Worker', '--json', 'How many stars?'])).json() as {
      details: { question_id: string }
    }[]
    const answered = await team.orc(['answer', asked!.details.question_id, '--from', 'Master', 'Four'])
    expect(answered.out).toContain('Worker gets the answer')
    await team.orc(['task-action', '--from', 'Master', '--task-id', 'task_2', '--action', 'cancel'])
    expect((await team.orc('why task_2')).out).toContain('task_2 is cancelled: Master cancelled it')
  })
})
