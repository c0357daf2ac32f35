import { expect, it } from 'vitest'
import { declareStatus, readAgents, registerAgent, setPaused, setSession } from '../../../src/agents/store.ts'
import { lastOfRun, readRunEntries } from '../../../src/audit/store.ts'
import type { HandlerContext } from '../../../src/commands/commands.ts'
import { findReceipt, replaceReceipt, storeReceipt } from '../../../src/commands/idempotency.ts'
import { insertToken, readTokens, revokeTokens } from '../../../src/commands/tokens.ts'
import {
  endHalt,
  postponeClocks,
  readHalt,
  storeAgentsToNotify,
  storeHaltRow,
} from '../../../src/halt/store.ts'
import { createHolding, type HeldInTasks, unpark, whyParked } from '../../../src/people/hold-command.ts'
import {
  askPeople,
  decideHumanRequest,
  findHumanRequest,
  forgetApprovals,
  insertApproval,
  lockHumanRequest,
  modifyHumanRequest,
  type PeopleRequest,
  readApprovals,
  readHumanRequests,
} from '../../../src/people/people.ts'
import type { Command } from '../../../src/protocol/command.ts'
import { createRun } from '../../../src/runs/run.ts'
import {
  findRun,
  insertRun,
  openRunIds,
  readNodes,
  readRunHead,
  replaceRun,
  runIds,
  updateRecord,
} from '../../../src/runs/store.ts'
import type { Store, Tx } from '../../../src/store/store.ts'
import { clearTimer, nextDue, setTimer, takeDue } from '../../../src/store/timers.ts'
import { newTask } from '../../../src/tasks/core/reduce.ts'
import { insertTask, setTaskDue, updateTask } from '../../../src/tasks/store.ts'
import type { Task } from '../../../src/tasks/task.ts'
import {
  findWebhook,
  forgetWebhook,
  keepWebhook,
  readWebhooks,
  type WebhookRow,
  webhookQueue,
} from '../../../src/webhooks/store.ts'
import { definePlan } from '../../runs/define-plan.ts'
import { type CurrentFixture, START } from '../store-fixture.ts'

const REQUEST: PeopleRequest & { expiresAt: number } = {
  kind: 'approval',
  purpose: 'command',
  asker: 'Worker',
  question: 'Worker wants to start Other',
  reason: 'orc.yaml says ask',
  action: { type: 'request_action', fields: {} },
  expiresAt: START + 1000,
}
/** The stored row of REQUEST. */
const { action: _, expiresAt, ...PLAIN } = REQUEST
const STORED = { ...PLAIN, action: JSON.stringify(REQUEST.action), context: '{}', expires_at: expiresAt }

export function recordCases(fixture: CurrentFixture) {
  it('keeps a halt and its end, and postpones every timer by its length', async () => {
    const first = await fixture().open()
    const row = { halted_by: 'operator', reason: null, at: START, agents: '["Ada"]' }
    await first.write(async (tx) => {
      await storeHaltRow(tx, row)
      setTimer(tx, 'a', 'x', START + 10)
      await askPeople(tx, REQUEST)
    })
    await first.write((tx) => storeAgentsToNotify(tx, '["Ada","Ben"]'))
    await first.close()
    const store = await fixture().open()
    expect(await readHalt(store)).toEqual({ ...row, agents: '["Ada","Ben"]' })
    await store.write(async (tx) => {
      endHalt(tx)
      postponeClocks(tx, 1000)
      storeAgentsToNotify(tx, '[]')
    })
    expect(await readHalt(store)).toBeUndefined()
    expect(await nextDue(store)).toBe(START + 1010)
    expect((await findHumanRequest(store, 1))!.expires_at).toBe(REQUEST.expiresAt + 1000)
  })

  it('keeps webhooks and their queues, the oldest event first', async () => {
    const store = await fixture().open()
    const [queue, other] = [webhookQueue('main', 'chat'), webhookQueue('main', 'other')]
    const row: WebhookRow = {
      ...{ name: 'chat', target: 't', state: 'active', seen: 1, failing_since: null, failures: 0 },
      ...{ not_before: null, last_error: null, sent: 0, dropped: 0, sent_at: null },
    }
    await store.write(async (tx) => {
      keepWebhook(tx, 'main', row)
      keepWebhook(tx, 'main', { ...row, failures: 2, last_error: '500' })
      for (const seq of [5, 3, 4, 3]) queue.add(tx, seq)
      other.add(tx, 1)
      queue.countAttempt(tx, 3)
    })
    expect(await readWebhooks(store, 'main')).toEqual([{ ...row, failures: 2, last_error: '500' }])
    expect(await readWebhooks(store, 'another')).toEqual([])
    expect(await queue.first(store)).toEqual({ seq: 3, attempts: 1 })
    await store.write((tx) => queue.remove(tx, 3))
    expect(await queue.first(store)).toEqual({ seq: 4, attempts: 0 })
    expect(await store.write((tx) => queue.shorten(tx, 1))).toBe(1)
    expect(await queue.first(store)).toEqual({ seq: 5, attempts: 0 })
    await store.write((tx) => forgetWebhook(tx, 'main', 'chat'))
    expect([await queue.count(store), await other.count(store)]).toEqual([0, 1])
    expect(await findWebhook(store, 'main', 'chat')).toBeUndefined()
  })

  it('keeps runs with their agents, lists open ones apart, and finds their audit entries', async () => {
    const plan = definePlan({
      name: 'Small',
      agents: { a: { command: 'x' }, b: { command: 'y', depends_on: ['a'] } },
    })
    const first = await fixture().open()
    const id = await first.write(async (tx) => {
      const key = await tx.nextKey('run')
      const run = createRun({ id: `run_${key}`, plan, now: START })
      const facts = { id: run.head.id, folder: '/f', runFolder: '/f/runs/x', by: 'ada' }
      insertRun(tx, 'main', { ...facts, plan, head: run.head }, run.nodes.values())
      updateRecord(tx, key, 'a', { inbox: '{"hash":"h"}', task: 'task_3' })
      tx.audit({
        type: 'run.begun',
        class: 'internal',
        actor: 'ada',
        text: 'x',
        data: { run_id: run.head.id },
      })
      return run.head.id
    })
    await first.close()
    const store = await fixture().open()
    const { head, ...stored } = (await findRun(store, id))!
    expect(stored).toEqual({ id, folder: '/f', runFolder: '/f/runs/x', by: 'ada', plan })
    expect(await openRunIds(store, 'main')).toEqual([id])
    expect(await openRunIds(store, 'another')).toEqual([])
    const nodes = await readNodes(store, id)
    expect(nodes.map(({ node }) => node)).toEqual([...createRun({ id, plan, now: START }).nodes.values()])
    expect(nodes[0]!.record).toEqual({ inbox: '{"hash":"h"}', task: 'task_3' })
    expect(await lastOfRun(store, 1, 'run.begun')).toBe(1)
    expect((await readRunEntries(store, 1, { after: 0, limit: 10 })).map(({ type }) => type)).toEqual([
      'run.begun',
    ])
    // Earlier versions used other names in the documents.
    const { reportPending, ...others } = head
    const earlierHead = JSON.stringify({ ...others, reportOwed: true })
    const earlierNode = JSON.stringify({ name: 'b', state: 'waiting', waitingFor: 1, kept: { attempt: 1 } })
    await store.write(async (tx) => {
      tx.run('UPDATE runs SET head = ?', [earlierHead])
      tx.run("UPDATE run_agents SET document = ? WHERE name = 'b'", [earlierNode])
    })
    expect(reportPending).toBe(false)
    expect(await readRunHead(store, id)).toEqual({ ...others, reportPending: true })
    expect((await readNodes(store, id))[1]!.node).toMatchObject({ previousResult: { attempt: 1 } })
    const ended = { ...head, outcome: 'completed' as const }
    const [a] = nodes.map(({ node }) => node)
    await store.write((tx) => replaceRun(tx, { id, folder: '/g', plan, head: ended }, new Map([['a', a!]])))
    expect(await readRunHead(store, id)).toEqual(ended)
    expect((await readNodes(store, id)).map(({ node }) => node.name)).toEqual(['a'])
    expect([
      await openRunIds(store, 'main'),
      await runIds(store, 'open', 9),
      await runIds(store, 'all', 9),
    ]).toEqual([[], [], [id]])
  })

  it('keeps a receipt by its key, permanently and per principal (C25)', async () => {
    const stored = { digest: 'd1', receipt: '{"status":"delivered"}' }
    const first = await fixture().open()
    await first.write((tx) => storeReceipt(tx, 'Ada', 'key-1', stored))
    await first.close()
    const store = await fixture().open()
    expect(await store.write((tx) => findReceipt(tx, 'Ada', 'key-1'))).toEqual(stored)
    expect(await store.write((tx) => findReceipt(tx, 'Bob', 'key-1'))).toBeUndefined()
    await expect(store.write((tx) => storeReceipt(tx, 'Ada', 'key-1', stored))).rejects.toThrow()
    const later = { digest: 'd2', receipt: '{}' }
    for (const each of [later, stored, later])
      await store.write((tx) => replaceReceipt(tx, 'Ada', 'key-1', each))
    expect(await store.write((tx) => findReceipt(tx, 'Ada', 'key-1'))).toEqual(later)
  })

  it('lets only the first of two concurrent commands with one key take effect (C25)', async () => {
    const store = await fixture().open()
    const effects: number[] = []
    const command = (number: number) =>
      store.write(async (tx) => {
        const known = await findReceipt(tx, 'Ada', 'same')
        if (known !== undefined) return known.receipt
        await storeReceipt(tx, 'Ada', 'same', { digest: 'd', receipt: `receipt ${number}` })
        tx.afterCommit(() => effects.push(number))
        return `receipt ${number}`
      })
    expect(await Promise.all([command(1), command(2), command(3)])).toEqual(Array(3).fill('receipt 1'))
    expect(effects).toEqual([1])
  })

  it('keeps the earlier of two timers, and takes what is due exactly once (C8)', async () => {
    let now = START
    const first = await fixture().open({ now: () => now })
    expect(await nextDue(first)).toBeUndefined()
    await first.write(async (tx) => {
      setTimer(tx, 'ack', 'Bob', START + 30)
      setTimer(tx, 'ack', 'Bob', START + 20)
      setTimer(tx, 'ack', 'Bob', START + 40)
      setTimer(tx, 'ack', 'Cleo', START + 25)
      setTimer(tx, 'expire', 'Bob', START + 10)
      clearTimer(tx, 'expire', 'Bob')
    })
    await first.close()

    const store = await fixture().open({ now: () => now })
    expect(await nextDue(store)).toBe(START + 20)
    expect(await store.write((tx) => takeDue(tx))).toBeUndefined()
    now = START + 30
    const taken = await Promise.all(Array.from({ length: 3 }, () => store.write((tx) => takeDue(tx))))
    expect(taken).toEqual([
      { kind: 'ack', ref: 'Bob', due_at: START + 20 },
      { kind: 'ack', ref: 'Cleo', due_at: START + 25 },
      undefined,
    ])
    expect(await nextDue(store)).toBeUndefined()
  })

  it('takes timers from a registered column among the others, the earliest first and each once (C8)', async () => {
    let now = START
    const columns = new Map([['task', { table: 'tasks', ids: 'task' as const }]])
    const store = await fixture().open({ now: () => now })
    const task = (key: number, at: number): Task => ({
      ...newTask({ id: `task_${key}`, delegator: 'Ada', agent: 'Bob', text: 'Do it', createdAt: START }),
      due: { kind: 'ack', at },
    })
    await store.write((tx) => {
      insertTask(tx, task(1, START + 30))
      insertTask(tx, task(2, START + 10))
      insertTask(tx, { ...task(3, START + 5), state: 'completed', endedAt: START })
      setTimer(tx, 'expire', 'Bob', START + 20)
    })
    expect(await nextDue(store, columns.values())).toBe(START + 10)
    const take = () => store.write((tx) => takeDue(tx, columns))
    expect(await take()).toBeUndefined()
    now = START + 25
    expect([await take(), await take(), await take()]).toEqual([
      { kind: 'task', ref: 'task_2', due_at: START + 10 },
      { kind: 'expire', ref: 'Bob', due_at: START + 20 },
      undefined,
    ])
    expect(await nextDue(store, columns.values())).toBe(START + 30)
    await store.write((tx) => {
      // The column decides, not the document: one task is due later, the other not at all.
      setTaskDue(tx, 'task_2', START + 26)
      updateTask(tx, task(1, START + 30), { ...task(1, 0), due: null })
    })
    expect(await nextDue(store, columns.values())).toBe(START + 26)
    now = START + 30
    expect([await take(), await take()]).toEqual([
      { kind: 'task', ref: 'task_2', due_at: START + 26 },
      undefined,
    ])
    expect(await nextDue(store, columns.values())).toBeUndefined()
  })

  it('keeps a due timer if the unit of work that took it fails', async () => {
    const store = await fixture().open()
    await store.write((tx) => setTimer(tx, 'ack', 'Bob', START))
    const failing = store.write(async (tx) => {
      await takeDue(tx)
      throw new Error('not handled')
    })
    await expect(failing).rejects.toThrow('not handled')
    expect(await store.write((tx) => takeDue(tx))).toMatchObject({ ref: 'Bob' })
  })

  it('lets a human request be decided once, however many decide at the same time (C9)', async () => {
    const store = await fixture().open()
    const { key: id } = await store.write((tx) => askPeople(tx, REQUEST))
    expect(await findHumanRequest(store, id)).toMatchObject({ ...STORED, state: 'open', decided_by: null })
    const verdicts = await Promise.all(
      ['approved', 'rejected', 'expired'].map((state) =>
        store.write((tx) =>
          decideHumanRequest(tx, id, { state: state as 'approved', by: 'operator', comment: null }),
        ),
      ),
    )
    expect(verdicts).toEqual([true, false, false])
    expect(await findHumanRequest(store, id)).toMatchObject({ state: 'approved', decided_at: START })
    expect(await findHumanRequest(store, 99)).toBeUndefined()
  })

  it('lists the newest requests, oldest first', async () => {
    const store = await fixture().open()
    for (let count = 0; count < 4; count++) await store.write((tx) => askPeople(tx, REQUEST))
    await store.write((tx) => decideHumanRequest(tx, 2, { state: 'rejected', by: 'operator', comment: 'no' }))
    const listed = async (state: 'open' | 'all', limit: number) =>
      (await readHumanRequests(store, state, limit)).map((row) => row.id)
    expect(await listed('all', 3)).toEqual([2, 3, 4])
    expect(await listed('open', 9)).toEqual([1, 3, 4])
  })

  it('counts the approval of a person for one action once, and keeps it (C9)', async () => {
    const first = await fixture().open()
    const give = (store: Store, person: string, action_hash: string) =>
      store.write((tx) => insertApproval(tx, { request: 1, person, action_hash, comment: null }))
    expect(await give(first, 'ada', 'h1')).toBe(true)
    expect(await give(first, 'ada', 'h1')).toBe(false)
    expect(await give(first, 'ada', 'h2')).toBe(true)
    expect(await give(first, 'ben', 'h1')).toBe(true)
    await first.close()
    const store = await fixture().open()
    const given = await readApprovals(store, [1, 2])
    expect(given.map(({ person, action_hash }) => `${person} ${action_hash}`).toSorted()).toEqual([
      'ada h1',
      'ada h2',
      'ben h1',
    ])
    expect(await readApprovals(store, [])).toEqual([])
    await store.write((tx) => forgetApprovals(tx, 1))
    expect(await readApprovals(store, [1])).toEqual([])
  })

  it('keeps the original action when a person changes it', async () => {
    const store = await fixture().open()
    const { key: id } = await store.write((tx) =>
      askPeople(tx, { ...REQUEST, approval: { quorum: 2, approvers: ['ada'] } }),
    )
    const change = (action: string) =>
      store.write(async (tx) =>
        modifyHumanRequest(tx, (await lockHumanRequest(tx, id))!, {
          action,
          action_hash: 'def',
          question: 'May Ada?',
          approvers: null,
          quorum: 1,
          modified_by: 'ben',
        }),
      )
    await change('{"second":true}')
    await change('{"third":true}')
    expect(await findHumanRequest(store, id)).toMatchObject({
      action: '{"third":true}',
      asked_action: STORED.action,
      modified_by: 'ben',
      approvers: null,
      quorum: 1,
      form: '{}',
    })
    expect(await store.write((tx) => lockHumanRequest(tx, id + 1))).toBeUndefined()
  })

  it('distinguishes tokens of people from those of agents, whatever their names', async () => {
    const store = await fixture().open()
    await store.write((tx) => insertToken(tx, { agent: null, person: 'ada' }, 'h1'))
    await store.write((tx) => insertToken(tx, { agent: null, person: null }, 'h2'))
    expect(await readTokens(store)).toMatchObject([
      { person: 'ada', agent: null },
      { person: null, agent: null },
    ])
    expect(await store.write((tx) => revokeTokens(tx, { holder: null }))).toEqual(['h2'])
    expect(await store.write((tx) => revokeTokens(tx, { holder: 'ada' }))).toEqual(['h1'])
  })

  it('forgets a revoked token at once and keeps the others', async () => {
    const store = await fixture().open()
    const ids: number[] = []
    for (const [agent, hash] of [
      ['Ada', 'h1'],
      ['Ada', 'h2'],
      [null, 'h3'],
      ['Bob', 'h4'],
    ] as const) {
      ids.push(await store.write((tx) => insertToken(tx, { agent, person: null }, hash)))
    }
    expect(await store.write((tx) => revokeTokens(tx, { holder: 'Ada' }))).toEqual(['h1', 'h2'])
    expect(await store.write((tx) => revokeTokens(tx, { id: ids[3]! }))).toEqual(['h4'])
    expect(await store.write((tx) => revokeTokens(tx, { holder: 'Ada' }))).toEqual([])
    expect(await readTokens(store)).toEqual([
      {
        id: ids[2],
        agent: null,
        person: null,
        hash: 'h3',
        created_at: START,
        revoked_at: null,
        expires_at: null,
      },
    ])
  })

  it('keeps the state of an agent when it is registered again', async () => {
    const store = await fixture().open()
    await store.write(async (tx) => {
      for (const name of ['bob', 'Zoe', 'Ada']) registerAgent(tx, name, 'unknown')
      setSession(tx, 'Ada', 'busy')
      declareStatus(tx, 'Ada', 'working', 'the task')
      setPaused(tx, 'Ada', true)
      registerAgent(tx, 'Ada', 'initializing')
    })
    const agents = await readAgents(store)
    expect(agents.map((agent) => agent.name)).toEqual(['Ada', 'Zoe', 'bob'])
    expect(agents[0]).toMatchObject({
      session_state: 'busy',
      declared_status: 'working',
      current_task: 'the task',
      paused: 1,
      owner: null,
    })
  })

  it('remembers which conversations are parked', async () => {
    const store = await fixture().open()
    const tasks = { taskOf: async () => null, about: async () => ({}) } as unknown as HeldInTasks
    const holding = createHolding({ timers: { setFor() {} }, tasks, redact: (text) => text })
    const parkBy = (tx: Tx, name: string, to: string) => {
      const speaker = { name, principal: { kind: 'agent' as const, agent: name }, onBehalf: false }
      const command = { type: 'send_message', fields: {} } as Command
      return holding.askToContinue({ tx, speaker } as HandlerContext, command, to, 'a loop')
    }
    await store.write(async (tx) => {
      await parkBy(tx, 'Bob', 'Ada')
      await parkBy(tx, 'Ada', 'Bob')
      await parkBy(tx, 'Bob', 'Cleo')
      unpark(tx, 'Bob Cleo')
    })
    expect(await whyParked(store, 'Bob', 'Ada')).toContain('req_1')
    expect(await whyParked(store, 'Bob', 'Cleo')).toBeUndefined()
  })
}
