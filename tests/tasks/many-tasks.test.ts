import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { readHumanRequests } from '../../src/people/people.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Reader, Store } from '../../src/store/store.ts'
import { newTask } from '../../src/tasks/core/reduce.ts'
import { insertTask } from '../../src/tasks/store.ts'
import { createPuppets } from '../fakes/puppet-runtime.ts'
import { decide, OPERATOR } from '../harness/engine.ts'
import { openTeam, type TaskTeam } from './harness.ts'

let team: TaskTeam
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orchub-many-'))
})
afterEach(async () => {
  await team.close()
  rmSync(folder, { recursive: true })
})

const MANY = 2000

/** Counts the task rows that are read from the store. */
function counted(store: Store) {
  const rows = { read: 0 }
  const counting = <R extends Reader>(reader: R): R =>
    new Proxy(reader, {
      get(target, name, receiver) {
        if (name !== 'all') return Reflect.get(target, name, receiver)
        return async (sql: string, params?: readonly (string | number | null)[]) => {
          const found = await target.all(sql, params)
          if (/FROM tasks/.test(sql)) rows.read += found.length
          return found
        }
      },
    })
  const write: Store['write'] = (work, place) => store.write((tx) => work(counting(tx)), place)
  return { rows, store: { ...counting(store), ...store, all: counting(store).all, write } as Store }
}

describe('an agent with thousands of open tasks', () => {
  it('costs no more per turn than one with a few: waiting tasks are not read (ask 12)', async () => {
    let rows = { read: 0 }
    team = await openTeam(
      { Master: {}, Worker: { parent: 'Master' }, Helper: { parent: 'Worker' } },
      {},
      createPuppets(),
      undefined,
      async (options) => {
        const opened = counted(await openSqliteStore(join(folder, 'orc.db'), options))
        rows = opened.rows
        return opened.store
      },
    )
    await team.rest('Master', 'Worker')
    await team.store.write(async (tx) => {
      for (let number = 0; number < MANY; number++) {
        const id = `task_${await tx.nextKey('task')}`
        const task = newTask({ id, delegator: 'Master', agent: 'Worker', text: 'Wait', createdAt: tx.now })
        await insertTask(tx, { ...task, state: 'waiting_child', sent: 1, awaiting: ['task_0'] })
      }
    })
    const before = rows.read
    await team.says('Master', 'delegate', { to: 'Worker', task: 'One more' })
    expect(team.turn('Worker')).toContain('One more')
    await team.says('Worker', 'delegate', { to: 'Helper', task: 'Help with it' })
    await team.ends('Worker', 'I wait for it.')
    expect(await team.task(`task_${MANY + 1}`)).toMatchObject({ state: 'waiting_child' })
    expect(rows.read - before).toBeLessThan(200)
    const answer = await team.says('Worker', 'report', { status: 'completed', result: 'Which?' })
    expect(answer).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('task_10 (Wait)') })
    expect(answer).not.toMatchObject({ message: expect.stringContaining('task_11 (Wait)') })
    expect(rows.read - before).toBeLessThan(300)
  })

  it('starts only delivered tasks: the timeout of a queued task does not run (C8)', async () => {
    team = await openTeam({ Master: {}, Worker: { parent: 'Master', deliver: 'single' } })
    await team.rest('Master', 'Worker')
    for (const task of ['One', 'Two', 'Three']) await team.says('Master', 'delegate', { to: 'Worker', task })
    await team.clock.advance(40_000)
    expect(await team.task('task_3')).toMatchObject({ state: 'analyzing' })
    await team.says('Worker', 'report', { in_response_to: 'task_1', status: 'completed', result: 'Done' })
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('Two')
    expect(await team.task('task_2')).toMatchObject({ state: 'executing' })
    expect(await team.task('task_3')).toMatchObject({ state: 'analyzing' })
    await team.clock.advance(290_000)
    await team.says('Worker', 'report', { in_response_to: 'task_2', status: 'completed', result: 'Done' })
    await team.ends('Worker')
    expect(team.turn('Worker')).toContain('Three')
    await team.clock.advance(290_000)
    expect(await team.task('task_3')).toMatchObject({ state: 'executing', attempt: 1 })
  })
})

/** An agent that is never started and takes no messages. */
const AWAY = { runtime: 'none' as const, program: undefined, with: undefined }

describe('hundreds of tasks that fail at once (C7)', () => {
  const notices = () => readHumanRequests(team.store, 'open', 1000)
  const delegate = async (count: number) => {
    for (let number = 0; number < count; number++)
      await team.order('delegate', { to: 'Worker', task: `Part ${number}` })
  }

  it('make one notice per cause, with their number and the first ids', async () => {
    team = await openTeam(
      { Worker: AWAY, Other: AWAY },
      { tasks: { retries: 0 }, people: { ada: {} } },
      createPuppets(),
    )
    await delegate(300)
    await team.order('delegate', { to: 'Other', task: 'Another' })
    await team.clock.advance(31_000)
    expect(await team.task('task_300')).toMatchObject({ state: 'failed' })
    const told = await notices()
    expect(told).toMatchObject([
      {
        count: 300,
        asker: 'Worker',
        question: expect.stringMatching(
          /^300 tasks of Worker failed: Worker did not take it within 30 s; the task has no retries \(task_1, (?:task_\d+, ){18}task_\d+ and 280 more\)$/,
        ),
      },
      { count: 1, asker: 'Other', question: expect.stringContaining('task_301') },
    ])
    expect(team.types().filter((type) => type === 'human.asked')).toHaveLength(2)
    expect(team.types().filter((type) => type === 'human.gathered')).toHaveLength(299)
    // After a person has seen the notice, later failures make a new one.
    const seen = await decide(team, OPERATOR, 'req_1', { decision: 'approve' })
    expect(seen.request).toMatchObject({ state: 'approved', count: 300 })
    await team.clock.advance(60_000)
    await delegate(1)
    await team.clock.advance(31_000)
    expect((await notices()).map(({ asker, count }) => [asker, count])).toEqual([
      ['Other', 1],
      ['Worker', 1],
    ])
  })
})
