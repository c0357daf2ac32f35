import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import type { Tx } from '../store/store.ts'
import { clearTimer } from '../store/timer-rows.ts'
import { decideHumanRequest, type HumanRequestRow } from './store/human-requests.ts'

export interface Unanswered {
  /** The reason, for people. */
  why: string
  /** Stored with the request. */
  comment?: string
  subject?: string
  data: Readonly<Record<string, unknown>>
}

/** Closes an open request that no longer needs an answer, and returns its id; undefined if it was closed already. */
export async function closeUnanswered(
  tx: Tx,
  { id: key }: Pick<HumanRequestRow, 'id'>,
  { why, comment, subject, data }: Unanswered,
): Promise<string | undefined> {
  const decision = { state: 'withdrawn', by: ORCHESTRATOR, comment: comment ?? null } as const
  if (!(await decideHumanRequest(tx, key, decision))) return undefined
  const id = formatId('req', key)
  await clearTimer(tx, 'expire_request', id)
  tx.audit({
    type: 'human.withdrawn',
    class: 'internal',
    actor: ORCHESTRATOR,
    ...(subject === undefined ? {} : { subject }),
    text: `${id} needs no answer any more: ${why}`,
    data: { request_id: id, ...data },
  })
  return id
}
