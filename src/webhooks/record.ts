import { ORCHESTRATOR } from '../base/agent.ts'
import { askPeople } from '../people/people.ts'
import type { Tx } from '../store/store.ts'

export function noteDropped(tx: Tx, webhook: string, why: string) {
  tx.audit(entry('dropped', webhook, why))
}

/** Records a dead webhook in the audit and in the inbox. */
export async function noteDeath(tx: Tx, webhook: string, error: string, lost: number) {
  const text = `the webhook ${webhook} is dead (${error}); ${lost} events were dropped`
  tx.audit(entry('dead', webhook, text))
  await askPeople(tx, {
    kind: 'escalation',
    purpose: 'notice',
    asker: ORCHESTRATOR,
    question: `The webhook ${webhook} is dead: ${error}. Repair it, then: orc webhooks test ${webhook}`,
    reason: `it took nothing any more; ${lost} events were dropped`,
    context: JSON.stringify({ webhook }),
    text,
    about: () => ({ webhook }),
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
