import { formatId } from '../../base/ids.ts'
import type { Store } from '../../store/store.ts'
import { type HumanRequestRow, hashOf } from '../people.ts'

/** A verdict is bound to the hash of the action it was given for: names a request whose stored action differs from it. */
export async function findChangedRequest(store: Store): Promise<string | undefined> {
  const rows = store.stream<Pick<HumanRequestRow, 'id' | 'asker' | 'context' | 'action' | 'action_hash'>>(
    'SELECT id, asker, context, action, action_hash FROM human_requests WHERE action IS NOT NULL ORDER BY id',
  )
  for await (const row of rows) {
    if (hashOf(row) !== row.action_hash) {
      return `The action of ${formatId('req', row.id)} is not the one that was asked about`
    }
  }
  return undefined
}
