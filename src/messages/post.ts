import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import type { Tx } from '../store/store.ts'
import type { Mailboxes } from './mailboxes.ts'
import type { Priority } from './message.ts'
import { insertMessage } from './store/messages.ts'

/** Sends a message from the service to an agent, such as a verdict or a warning. */
export async function post(
  tx: Tx,
  mailboxes: Mailboxes,
  message: { to: string; title: string; content: string; priority: Priority },
): Promise<void> {
  const { to, title, priority } = message
  const { key, digest } = await insertMessage(tx, { ...message, from: ORCHESTRATOR, hop: 0 })
  tx.audit({
    type: 'message.accepted',
    class: 'internal',
    actor: ORCHESTRATOR,
    subject: to,
    text: title,
    data: { message_id: formatId('msg', key), priority, digest },
  })
  await mailboxes.accepted(tx, to, priority, ORCHESTRATOR)
}
