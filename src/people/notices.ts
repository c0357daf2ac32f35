import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import type { Tx } from '../store/store.ts'
import { insertHumanRequest } from './store/human-requests.ts'

/** Notices have no timer; the date only tells people how long they are shown. */
const NOTICE_MS = 30 * 24 * 3600_000

export interface Notice {
  /** The agent that the notice is about. */
  readonly agent: string
  readonly question: string
  readonly reason: string
}

/** Puts a notice into the inbox. It needs no decision. */
export async function tellPeople(tx: Tx, { agent, question, reason }: Notice): Promise<void> {
  const request = await insertHumanRequest(tx, {
    kind: 'escalation',
    purpose: 'notice',
    asker: agent,
    question,
    reason,
    action: null,
    action_hash: null,
    context: '{}',
    expires_at: tx.now + NOTICE_MS,
  })
  const id = formatId('req', request)
  tx.audit({
    type: 'human.told',
    class: 'internal',
    actor: ORCHESTRATOR,
    subject: agent,
    text: `${id}: ${question}`,
    data: { request_id: id },
  })
}
