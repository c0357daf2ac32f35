import type { CallToolResult } from '@modelcontextprotocol/server'
import type { Receipt } from '../../protocol/receipt.ts'
import { escapeMarkers } from '../../protocol/response.ts'

/**
 * A receipt as the result of a tool: whole as structured content, and as text for clients that show only text.
 * A model reads either and may repeat it in its answer, which is scanned for commands: what other agents wrote must
 * not become one (C17).
 */
export function toolResult(receipt: Receipt): CallToolResult {
  const safe = escapeStrings(receipt)
  return {
    content: [{ type: 'text', text: textOf(safe) }],
    structuredContent: { ...safe },
    // Held is no error: it may still be carried out.
    ...(safe.status === 'error' || safe.status === 'blocked' ? { isError: true } : {}),
  }
}

function escapeStrings(receipt: Receipt): Receipt {
  return JSON.parse(JSON.stringify(receipt), (_, value) =>
    typeof value === 'string' ? escapeMarkers(value) : value,
  ) as Receipt
}

function textOf(receipt: Receipt): string {
  const text = sentencesOf(receipt)
  return receipt.ignored === undefined ? text : `${text}\nNot used: ${receipt.ignored.join(', ')}`
}

function sentencesOf(receipt: Receipt): string {
  switch (receipt.status) {
    case 'delivered':
      return (receipt.recipients ?? [{ ...receipt, status: 'delivered' as const }])
        .map(recipientLine)
        .join('\n')
    case 'ok': {
      const { result, details } = receipt
      return details === undefined ? result : `${result}\n${JSON.stringify(details, null, 2)}`
    }
    case 'blocked':
      return `Blocked: ${receipt.reason}. A rule forbids it: do not try again, tell whoever gave you the task.`
    case 'held':
      return `Held as ${receipt.request_id}: ${receipt.reason}. A person was asked. Go on with other work; the verdict comes as a message.`
    case 'error':
      return `${receipt.code}: ${receipt.message}${receipt.hint === undefined ? '' : `\n${receipt.hint}`}`
  }
}

function recipientLine({
  to,
  status,
  message_id,
  request_id,
  reason,
}: {
  to: string
  status: string
  message_id?: string
  request_id?: string
  reason?: string
}): string {
  if (status === 'delivered') return `Delivered into the mailbox of ${to} as ${message_id}; not read yet.`
  return `${to}: ${status}${request_id === undefined ? '' : ` as ${request_id}`}${reason === undefined ? '' : `: ${reason}`}`
}
