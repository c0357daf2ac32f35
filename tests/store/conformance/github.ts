import { expect, it } from 'vitest'
import { createAgentHealth } from '../../../src/github/agent-health.ts'
import type { GithubDependencies } from '../../../src/github/dependencies.ts'
import { indexEvent, searchDocuments } from '../../../src/github/search-index.ts'
import {
  actionsOfDelivery,
  changeAction,
  closeConduct,
  conductVersion,
  endDelivery,
  endWork,
  findAction,
  findWork,
  type GithubWork,
  hasNewConduct,
  insertAction,
  insertConduct,
  insertWork,
  keepDelivery,
  latestWorkAbout,
  markConductNotified,
  nextAction,
  nextDelivery,
  openWork,
  putOffDelivery,
  putOffWork,
  readActions,
  readConduct,
  readDeliveries,
  readDelivery,
  readFailureStreak,
  readSuspended,
  storeFailureStreak,
  takenSince,
  workOfDeliveries,
} from '../../../src/github/store.ts'
import type { Store } from '../../../src/store/store.ts'
import { type CurrentFixture, START } from '../store-fixture.ts'

const delivery = (id: string) => ({ id, event: 'issues', payload: '{}' })

async function show(
  store: Store,
  number: number,
  title: string,
  body: string,
  comment = '',
  at = START,
  type = 'issues.edited',
) {
  const said = { author: 'a', association: 'NONE' }
  const event = {
    ...{ id: 'd', type, repository: 'o/r', topics: [] },
    subject: {
      ...{ ...said, kind: 'issue' as const, number, title, body, labels: [], state: 'open' },
      ...{ comments: 0, draft: false, updatedAt: new Date(at).toISOString() },
    },
    ...(comment === '' ? {} : { comment: { ...said, id: 77, kind: 'comment' as const, body: comment } }),
  }
  await store.write((tx) => indexEvent(tx, event, (text) => text))
}

const search = async (store: Store, ...words: string[]) =>
  (await searchDocuments(store, { repository: 'o/r', words, except: 0, limit: 10 })).map(
    ({ number }) => number,
  )

const work: GithubWork = {
  id: 'd/triage',
  delivery: 'd',
  role: 'triage',
  agent: 'Triage',
  repository: 'o/r',
  number: 1,
  state: 'delegated',
  task: 7,
  after: null,
  needs: 'success',
  attempts: 0,
  delegation: '{}',
}

const action = {
  ...{
    key: 'k',
    work: work.id,
    agent: 'Triage',
    repository: 'o/r',
    number: 1,
    action: '{}',
    confidence: 0.5,
  },
  ...{ rationale: '', state: 'ready' as const, request: null, note: null },
}

/** The tables of the GitHub team. */
export function githubCases(fixture: CurrentFixture) {
  it('stores a webhook delivery once and ends it once (C25)', async () => {
    const store = await fixture().open()
    const keep = () => store.write((tx) => keepDelivery(tx, delivery('d')))
    expect([await keep(), await keep()]).toEqual([true, false])
    expect(await nextDelivery(store, START)).toMatchObject({ id: 'd', payload: '{}', attempts: 0 })
    const end = () => store.write((tx) => endDelivery(tx, 'd', 'routed', null))
    expect([await end(), await end(), await keep()]).toEqual([true, false, false])
    expect(await nextDelivery(store, START)).toBeUndefined()
  })

  it('postpones a webhook delivery without losing its place', async () => {
    const store = await fixture().open()
    await store.write((tx) => keepDelivery(tx, delivery('d')))
    await store.write((tx) => putOffDelivery(tx, 'd', START + 5, 'later'))
    expect(await nextDelivery(store, START + 4)).toBeUndefined()
    expect(await nextDelivery(store, START + 5)).toMatchObject({ id: 'd', attempts: 1 })
  })

  it('knows since when webhooks are received, and which are missing', async () => {
    let now = START
    const store = await fixture().open({ now: () => now })
    await store.write((tx) => keepDelivery(tx, delivery('one')))
    now += 5000
    expect(await store.write(takenSince)).toBe(START)
    now += 5000
    expect(await store.write(takenSince)).toBe(START)
    for (const id of ['two', "it's"]) expect(await readDelivery(store, id)).toBeUndefined()
    expect(await readDelivery(store, 'one')).toBeDefined()
  })

  it('counts the result of a piece of work once', async () => {
    const store = await fixture().open()
    await store.write((tx) => insertWork(tx, work))
    const end = () => store.write((tx) => endWork(tx, work.id, 'done'))
    expect([await end(), await end()]).toEqual([true, false])
  })

  it('stores the same proposal once, with its outcome', async () => {
    const store = await fixture().open()
    const insert = () => store.write((tx) => insertAction(tx, action))
    expect([await insert(), await insert()]).toEqual([true, false])
    expect(await nextAction(store, START)).toMatchObject({ key: 'k', confidence: 0.5, attempts: 0 })
    await store.write((tx) => changeAction(tx, 'k', { state: 'done', url: 'u' }))
    expect(await nextAction(store, START)).toBeUndefined()
    expect(await findAction(store, 'k')).toMatchObject({ state: 'done', url: 'u', action: '{}' })
  })

  it('retries work without losing it, and knows its agent', async () => {
    const store = await fixture().open()
    await store.write((tx) => insertWork(tx, work))
    expect(await openWork(store, 'Triage')).toMatchObject([{ id: 'd/triage', attempts: 0 }])
    const putOff = () => store.write((tx) => putOffWork(tx, work.id))
    expect([await putOff(), await putOff()]).toEqual([true, false])
    expect(await findWork(store, work.id)).toMatchObject({ state: 'waiting', task: null, attempts: 1 })
    expect(await openWork(store, 'Triage')).toEqual([])
    expect(await latestWorkAbout(store, 'Triage', 1)).toMatchObject({ id: 'd/triage' })
    expect(await latestWorkAbout(store, 'Triage', 2)).toBeUndefined()
    const { delegation: _, ...outline } = work
    // Lists leave out the long delegation.
    expect(await workOfDeliveries(store, ['d'])).toEqual([
      { ...outline, state: 'waiting', task: null, attempts: 1 },
    ])
  })

  it('counts what agents did and what is waiting', async () => {
    const store = await fixture().open()
    await store.write((tx) => keepDelivery(tx, delivery('d')))
    await store.write((tx) => insertWork(tx, work))
    await store.write((tx) => insertWork(tx, { ...work, id: 'e/triage', delivery: 'e', task: 8 }))
    const config = { github: { team: {} } }
    const stateAt = async (now: number) =>
      await createAgentHealth({
        store,
        timers: { on() {} },
        clock: { now: () => now },
        team: () => ({
          config,
          isConfidential: () => false,
          resolve: (name: string) => (name === 'triage' ? 'Triage' : undefined),
        }),
        settings: () => ({ routes: {}, schedule: [], team: {}, dryRun: false }),
      } as unknown as GithubDependencies).state()
    const [overdue] = (await stateAt(START + 16 * 60_000)).agents
    expect(overdue?.warnings).toEqual(['2 of its tasks are older than 15 minutes'])
    await store.write((tx) => endWork(tx, 'd/triage', 'done'))
    await store.write((tx) => endWork(tx, 'e/triage', 'failed'))
    await store.write((tx) => insertAction(tx, action))
    expect(await stateAt(START + 1)).toMatchObject({
      last_event_at: new Date(START).toISOString(),
      events_waiting: 1,
      actions_waiting: 1,
      agents: [
        {
          agent: 'Triage',
          last_task_completed: new Date(START).toISOString(),
          tasks_completed_last_hour: 1,
          average_response_time_ms: 0,
          error_rate_percentage: 50,
          confidence_score_average: 0.5,
        },
      ],
    })
    expect(await actionsOfDelivery(store, 'd')).toMatchObject([{ key: 'k' }])
    expect(await actionsOfDelivery(store, 'e')).toEqual([])
    expect(await readDelivery(store, 'd')).toMatchObject({ state: 'waiting' })
  })

  it('keeps a flag for moderators once, until one of them decides', async () => {
    const store = await fixture().open()
    const keep = (flag: string) =>
      store.write((tx) => insertConduct(tx, { id: 'f', repository: 'o/r', number: 1, flag }))
    await keep('{"a":1}')
    const mark = await conductVersion(store)
    await keep('{"a":1}')
    expect(await conductVersion(store)).toBe(mark)
    await keep('{"a":2}')
    // An open page must reload the changed flag.
    expect(await conductVersion(store)).not.toBe(mark)
    expect(await readConduct(store, 'open', 10)).toMatchObject([{ flag: '{"a":2}', decision: null }])
    expect(await hasNewConduct(store)).toBe(true)
    await store.write((tx) => markConductNotified(tx, START))
    expect(await hasNewConduct(store)).toBe(false)
    const close = () =>
      store.write((tx) => closeConduct(tx, 'f', { by: 'mo', decision: 'dismissed', comment: null }))
    expect([await close(), await close()]).toEqual([true, false])
    await keep('{"a":3}')
    expect(await readConduct(store, 'open', 10)).toEqual([])
    expect(await readConduct(store, 'all', 10)).toMatchObject([{ flag: '{"a":2}', closed_by: 'mo' }])
  })

  it('lists events with their work, proposals and suspended agents, newest first', async () => {
    let now = START
    const store = await fixture().open({ now: () => now })
    for (const id of ['d', 'e']) {
      await store.write((tx) => keepDelivery(tx, delivery(id)))
      now += 1000
    }
    await store.write(async (tx) => {
      insertWork(tx, work)
      await insertAction(tx, { ...action, state: 'asked', request: 3 })
      storeFailureStreak(tx, 'Triage', { failures: 6, isSuspended: true })
    })
    const deliveries = (await readDeliveries(store, 10)).map(({ id }) => id)
    expect(deliveries).toEqual(['e', 'd'])
    expect(await workOfDeliveries(store, deliveries)).toMatchObject([{ delivery: 'd', number: 1, task: 7 }])
    expect(await readActions(store, 10)).toMatchObject([{ key: 'k', confidence: 0.5, request: 3 }])
    expect(await readSuspended(store)).toMatchObject([{ agent: 'Triage', failures: 6 }])
  })

  it('keeps the health of an agent', async () => {
    const store = await fixture().open()
    expect(await readFailureStreak(store, 'A')).toEqual({ failures: 0, isSuspended: false })
    await store.write((tx) => storeFailureStreak(tx, 'A', { failures: 6, isSuspended: true }))
    expect(await readFailureStreak(store, 'A')).toEqual({ failures: 6, isSuspended: true })
    await store.write((tx) => storeFailureStreak(tx, 'A', { failures: 0, isSuspended: false }))
    expect(await readFailureStreak(store, 'A')).toEqual({ failures: 0, isSuspended: false })
  })

  it('finds threads by their words in any form, the closest first, each once', async () => {
    const store = await fixture().open()
    await show(store, 1, 'Crash on start', 'It crashes when started twice.')
    await show(store, 2, 'A new theme', 'Please add colours. Nothing about crashes in this one.')
    await show(store, 1, 'Crash on start', 'It crashes when started twice.', 'The crashing goes on.')
    await show(store, 3, 'Documentation', 'Typos.')
    expect(await search(store, 'crash', 'start')).toEqual([1, 2])
    expect(await search(store, 'documentation')).toEqual([3])
    expect(await search(store, 'nowhere')).toEqual([])
    expect(await search(store)).toEqual([])
    const other = { repository: 'x/y', words: ['crash'], except: 0, limit: 10 }
    expect(await searchDocuments(store, other)).toEqual([])
    expect(await searchDocuments(store, { ...other, repository: 'o/r', except: 1 })).toMatchObject([
      { number: 2 },
    ])
  })

  it('follows changed and removed documents', async () => {
    const store = await fixture().open()
    await show(store, 1, 'Crash', 'a\0b \ud800')
    await show(store, 1, 'Theme', 'colours')
    expect(await search(store, 'crash')).toEqual([])
    expect(await search(store, 'colours')).toEqual([1])
    await show(store, 1, 'Crash', 'older', '', START - 1)
    expect(await search(store, 'colours')).toEqual([1])
    await show(store, 1, 'Theme', 'colours', '', START, 'issues.deleted')
    expect(await search(store, 'colours')).toEqual([])
    expect(await store.check()).toEqual([])
  })
}
