import { endDelivery, insertAction, insertConduct, insertWork, keepDelivery } from '../../src/github/store.ts'
import type { Store } from '../../src/store/store.ts'

const work = { repository: 'ada/engine', after: null, needs: 'any', attempts: 0, delegation: '{}' } as const

/** Writes what the store holds after a day on GitHub. */
export async function writeGithubFixture(store: Store): Promise<void> {
  await store.write(async (tx) => {
    for (const [id, event] of [
      ['delivery-1', 'issues'],
      ['delivery-2', 'pull_request'],
      ['delivery-3', 'star'],
    ] as const)
      await keepDelivery(tx, { id, event, payload: '{}' })
    await endDelivery(tx, 'delivery-1', 'routed', null)
    await endDelivery(tx, 'delivery-2', 'routed', null)
    await endDelivery(tx, 'delivery-3', 'ignored', 'no route matches star')
    await insertWork(tx, {
      ...{ ...work, id: 'delivery-1/triage', delivery: 'delivery-1', role: 'triage', agent: 'Triage' },
      ...{ number: 7, state: 'done', task: 1 },
    })
    await insertWork(tx, {
      ...{ ...work, id: 'delivery-2/scribe', delivery: 'delivery-2', role: 'scribe', agent: 'Scribe' },
      ...{ number: 8, state: 'delegated', task: 2 },
    })
    const action = { work: 'delivery-1/triage', agent: 'Triage', repository: 'ada/engine', number: 7 }
    await insertAction(tx, {
      ...{
        ...action,
        key: 'key-1',
        action: '{"kind":"close","number":7,"duplicate_of":3}',
        confidence: 0.81,
      },
      ...{ rationale: 'The same stack trace as in #3.', state: 'asked', request: 3, note: null },
    })
    await insertAction(tx, {
      ...{ ...action, key: 'key-2', action: '{"kind":"label","number":7,"label":"bug"}', confidence: 0.97 },
      ...{ rationale: 'It crashes, and it should not.', state: 'done', request: null, note: null },
    })
    await insertConduct(tx, {
      ...{ id: 'flag-1', repository: 'ada/engine', number: 7 },
      flag: JSON.stringify({ message_type: 'coc_violation_flag', evidence: 'a rude word' }),
    })
  })
}
