import { expect, it } from 'vitest'
import { declareStatus, readAgents, registerAgent, setPaused, setSession } from '../../../src/store/agents.ts'
import {
  decideHumanRequest,
  findHumanRequest,
  insertHumanRequest,
  type NewHumanRequest,
  readHumanRequests,
} from '../../../src/store/human-requests.ts'
import { findReceipt, keepReceipt } from '../../../src/store/idempotency.ts'
import { park, parkedBy, unpark } from '../../../src/store/parked.ts'
import { clearTimer, nextDue, setTimer, takeDue } from '../../../src/store/timers.ts'
import { insertToken, readTokens, revokeTokens } from '../../../src/store/tokens.ts'
import { type Here, START } from '../place.ts'

const REQUEST: NewHumanRequest = {
  kind: 'approval',
  purpose: 'command',
  asker: 'Ada',
  question: 'May Ada spawn Worker?',
  reason: 'a rule says ask',
  action: '{"type":"request_action"}',
  action_hash: 'abc',
  context: '{}',
  expires_at: START + 1000,
}

export function recordCases(here: Here) {
  it('keeps a receipt by its key, for good and per principal (C25)', async () => {
    const stored = { digest: 'd1', receipt: '{"status":"delivered"}' }
    const first = await here().open()
    await first.write((tx) => keepReceipt(tx, 'Ada', 'key-1', stored))
    await first.close()
    const store = await here().open()
    expect(await store.write((tx) => findReceipt(tx, 'Ada', 'key-1'))).toEqual(stored)
    expect(await store.write((tx) => findReceipt(tx, 'Bob', 'key-1'))).toBeUndefined()
    await expect(store.write((tx) => keepReceipt(tx, 'Ada', 'key-1', stored))).rejects.toThrow()
  })

  it('lets of two commands with one key that come together only the first take effect (C25)', async () => {
    const store = await here().open()
    const effects: number[] = []
    const command = (number: number) =>
      store.write(async (tx) => {
        const known = await findReceipt(tx, 'Ada', 'same')
        if (known !== undefined) return known.receipt
        await keepReceipt(tx, 'Ada', 'same', { digest: 'd', receipt: `receipt ${number}` })
        tx.afterCommit(() => effects.push(number))
        return `receipt ${number}`
      })
    expect(await Promise.all([command(1), command(2), command(3)])).toEqual(Array(3).fill('receipt 1'))
    expect(effects).toEqual([1])
  })

  it('keeps the earlier of two timers, and takes what is due exactly once (C8)', async () => {
    let now = START
    const first = await here().open({ now: () => now })
    expect(await nextDue(first)).toBeUndefined()
    await first.write(async (tx) => {
      await setTimer(tx, 'ack', 'Bob', START + 30)
      await setTimer(tx, 'ack', 'Bob', START + 20)
      await setTimer(tx, 'ack', 'Bob', START + 40)
      await setTimer(tx, 'ack', 'Cleo', START + 25)
      await setTimer(tx, 'expire', 'Bob', START + 10)
      await clearTimer(tx, 'expire', 'Bob')
    })
    await first.close()

    const store = await here().open({ now: () => now })
    expect(await nextDue(store)).toBe(START + 20)
    expect(await store.write((tx) => takeDue(tx, 10))).toEqual([])
    now = START + 30
    const taken = await Promise.all(Array.from({ length: 3 }, () => store.write((tx) => takeDue(tx, 10))))
    expect(taken).toEqual([
      [
        { kind: 'ack', ref: 'Bob', due_at: START + 20 },
        { kind: 'ack', ref: 'Cleo', due_at: START + 25 },
      ],
      [],
      [],
    ])
    expect(await nextDue(store)).toBeUndefined()
  })

  it('keeps a due timer if the work that took it fails', async () => {
    const store = await here().open()
    await store.write((tx) => setTimer(tx, 'ack', 'Bob', START))
    const failing = store.write(async (tx) => {
      await takeDue(tx, 10)
      throw new Error('not handled')
    })
    await expect(failing).rejects.toThrow('not handled')
    expect(await store.write((tx) => takeDue(tx, 10))).toHaveLength(1)
  })

  it('lets a human request be decided once, whoever comes at the same time (C9)', async () => {
    const store = await here().open()
    const id = await store.write((tx) => insertHumanRequest(tx, REQUEST))
    expect(await findHumanRequest(store, id)).toMatchObject({ ...REQUEST, state: 'open', decided_by: null })
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
    const store = await here().open()
    for (let count = 0; count < 4; count++) await store.write((tx) => insertHumanRequest(tx, REQUEST))
    await store.write((tx) => decideHumanRequest(tx, 2, { state: 'rejected', by: 'operator', comment: 'no' }))
    const listed = async (state: 'open' | 'all', limit: number) =>
      (await readHumanRequests(store, state, limit)).map((row) => row.id)
    expect(await listed('all', 3)).toEqual([2, 3, 4])
    expect(await listed('open', 9)).toEqual([1, 3, 4])
  })

  it('forgets a revoked token at once, and keeps the others', async () => {
    const store = await here().open()
    const ids: number[] = []
    for (const [agent, hash] of [
      ['Ada', 'h1'],
      ['Ada', 'h2'],
      [null, 'h3'],
      ['Bob', 'h4'],
    ] as const) {
      ids.push(await store.write((tx) => insertToken(tx, agent, hash)))
    }
    expect(await store.write((tx) => revokeTokens(tx, { agent: 'Ada' }))).toEqual(['h1', 'h2'])
    expect(await store.write((tx) => revokeTokens(tx, { id: ids[3]! }))).toEqual(['h4'])
    expect(await store.write((tx) => revokeTokens(tx, { agent: 'Ada' }))).toEqual([])
    expect(await readTokens(store)).toEqual([
      { id: ids[2], agent: null, hash: 'h3', created_at: START, revoked_at: null },
    ])
  })

  it('keeps what is known of an agent when it is registered again', async () => {
    const store = await here().open()
    await store.write(async (tx) => {
      for (const name of ['bob', 'Zoe', 'Ada']) await registerAgent(tx, name, 'unknown')
      await setSession(tx, 'Ada', 'busy')
      await declareStatus(tx, 'Ada', 'working', 'the task')
      await setPaused(tx, 'Ada', true)
      await registerAgent(tx, 'Ada', 'initializing')
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
    const store = await here().open()
    await store.write(async (tx) => {
      await park(tx, 'Ada Bob', 1)
      await park(tx, 'Ada Bob', 2)
      await park(tx, 'Bob Cleo', 3)
      await unpark(tx, 'Bob Cleo')
    })
    expect(await parkedBy(store, 'Ada Bob')).toBe(1)
  })
}
