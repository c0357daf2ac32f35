import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import { insertHumanRequest } from '../people/people.ts'
import type { Tx } from '../store/store.ts'

/** Notices have no timer; the date only tells people how long they are shown. */
const NOTICE_MS = 365 * 24 * 3600_000

export function noteDropped(tx: Tx, webhook: string, why: string) {
  tx.audit(entry('dropped', webhook, why))
}

/** Records a dead webhook in the audit and in the inbox. */
export async function noteDeath(tx: Tx, webhook: string, error: string, lost: number) {
  const text = `the webhook ${webhook} is dead (${error}); ${lost} events were dropped`
  tx.audit(entry('dead', webhook, text))
  const key = await insertHumanRequest(tx, {
    kind: 'escalation',
    purpose: 'notice',
    asker: ORCHESTRATOR,
    question: `The webhook ${webhook} is dead: ${error}. Repair it, then: orc webhooks test ${webhook}`,
    reason: `it took nothing any more; ${lost} events were dropped`,
    action: null,
    action_hash: null,
    context: JSON.stringify({ webhook }),
    expires_at: tx.now + NOTICE_MS,
  })
  const id = formatId('req', key)
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor: ORCHESTRATOR,
    text: `${id}: ${text}`,
    data: { request_id: id, kind: 'escalation', awaits: false, webhook },
  })
}

function entry(what: string, webhook: string, text: string) {
  return {
    type: `webhook.${what}`,
    class: 'internal' as const,
    actor: ORCHESTRATOR,
    text: `${webhook}: ${text}`,
    data: { webhook },
  }
}
