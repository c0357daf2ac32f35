import type { AgentAction } from '../../../protocol/command.ts'
import type { Receipt } from '../../../protocol/receipt.ts'
import { openClient } from '../../connection/client.ts'
import { showAnyReceipt } from '../../output/receipt-text.ts'
import type { Invocation, Verb } from '../../verb.ts'

/** A verb that sends one `request_action` per agent. */
export function actionVerb(action: AgentAction, about: Pick<Verb, 'name' | 'summary'> & Partial<Verb>): Verb {
  return {
    arguments: [{ name: 'AGENT', rest: true }],
    options: [{ name: 'reason', value: 'TEXT', summary: 'the reason, for the audit log' }],
    examples: [`orc ${about.name} Worker`, `orc ${about.name} Worker Reviewer --reason "a new task"`],
    ...about,
    run: (invocation) => actOn(action, invocation),
  }
}

async function actOn(action: AgentAction, { location, words, option, json }: Invocation): Promise<number> {
  const client = await openClient(location)
  const reason = option('reason')
  let code = 0
  for (const target of words) {
    const receipt = (await client.command({
      type: 'request_action',
      action,
      target,
      ...(reason === undefined ? {} : { reason }),
    })) as Receipt
    code = Math.max(code, showAnyReceipt(receipt, json))
  }
  return code
}

export const start = actionVerb('spawn_agent', {
  name: 'agent start',
  summary: 'start an agent; it continues its last conversation',
})

export const reset = actionVerb('reset_session', {
  name: 'agent reset',
  summary: 'start a new conversation with an agent and restore its role',
})

export const pause = actionVerb('pause_session', {
  name: 'agent pause',
  summary: 'hold deliveries to an agent without interrupting it',
})

export const resume = actionVerb('resume_session', {
  name: 'agent resume',
  summary: 'resume deliveries to a paused agent',
  details: 'After `orc service halt`, use `orc service go` instead.',
})
