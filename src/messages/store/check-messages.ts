import { formatId } from '../../base/ids.ts'
import type { Store } from '../../store/store.ts'
import { DELIVERY_STATES, type DeliveryState } from '../message.ts'
import { isIntact, type MessageRow } from './messages.ts'

const MAX_PROBLEMS = 20

interface CheckedRow extends MessageRow {
  state: DeliveryState | null
  delivery_priority: number | null
}

/** Compares every message with its digest and its delivery: what no database notices by itself. */
export async function checkMessages(stream: Store['stream']): Promise<string[]> {
  const problems: string[] = []
  const rows = stream<CheckedRow>(
    `SELECT m.*, d.state, d.priority AS delivery_priority FROM messages AS m
       LEFT JOIN deliveries AS d ON d.recipient = m.recipient AND d.message = m.seq ORDER BY m.seq`,
  )
  try {
    for await (const row of rows) {
      const problem = problemOf(row)
      if (problem === undefined) continue
      problems.push(`${formatId('msg', row.seq)} ${problem}`)
      if (problems.length === MAX_PROBLEMS) break
    }
  } catch (error) {
    problems.push((error as Error).message)
  }
  return problems
}

function problemOf(row: CheckedRow): string | undefined {
  if (!isIntact(row)) return 'is not what was stored'
  if (row.state === null) return 'has lost its delivery'
  if (!DELIVERY_STATES.includes(row.state) || row.delivery_priority !== row.priority) {
    return 'has a damaged delivery'
  }
  return undefined
}
