import { expect, it } from 'vitest'
import { createTurns } from '../../../src/programs/codex/turns.ts'
import { commandExecution } from './recorded.ts'

const command = (id: string, processId: string) => ({ ...commandExecution, id, processId })

it('knows the commands of a stopped turn, even one whose start is reported late', async () => {
  const turns = createTurns()
  turns.began('t1')
  turns.itemBegan('t1', command('i1', '1'))
  turns.itemBegan('t1', command('i2', '2'))
  turns.itemEnded(command('i2', '2'))
  turns.itemBegan('t2', command('i3', '3'))
  const terminals = turns.terminalsOf('t1')
  const ended = turns.untilEnded('t1')
  turns.itemBegan('t1', command('i4', '4'))
  turns.itemEnded(command('i4', '4'))
  turns.ended({ id: 't1', status: 'interrupted' })
  await ended
  expect([...terminals]).toEqual(['1', '4'])
})
