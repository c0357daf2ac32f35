import type { Reader } from '../../store/store.ts'
import { PRIORITIES } from '../message.ts'

export interface UrgentMail {
  message: number
  sender: string
}

const URGENT = PRIORITIES.indexOf('urgent')

/** The first few urgent messages that wait for the agent and may begin a turn, oldest first. */
export async function queuedUrgent(reader: Reader, agent: string): Promise<UrgentMail[]> {
  return await reader.all<UrgentMail>(
    `SELECT d.message, m.sender FROM deliveries AS d JOIN messages AS m ON m.seq = d.message
      WHERE d.recipient = ? AND d.state NOT IN ('read', 'failed') AND d.state = 'queued'
        AND d.priority = ${URGENT} AND m.quiet = 0 ORDER BY d.message LIMIT 50`,
    [agent],
  )
}
