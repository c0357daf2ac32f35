import type { Receipt } from './receipt.ts'

const OPENING = '[ORCHESTRATOR RESPONSE]'
const CLOSING = '[END ORCHESTRATOR RESPONSE]'

/** Renders the response to an agent's command for its terminal (S1.15). */
export function renderResponse(command: string, receipt: Receipt): string {
  const { result, details } = explain(command, receipt)
  return [
    OPENING,
    `Command: ${escapeMarkers(command)}`,
    `Status: ${receipt.status}`,
    `Result: ${escapeMarkers(result)}`,
    `Details: ${escapeMarkers(JSON.stringify(details, null, 2))}`,
    CLOSING,
  ].join('\n')
}

/** Renders a response block that belongs to no command. */
export function renderRemark(text: string): string {
  return [OPENING, 'Status: ok', `Result: ${escapeMarkers(text)}`, CLOSING].join('\n')
}

function explain(command: string, receipt: Receipt): { result: string; details: Record<string, unknown> } {
  const ignored = receipt.ignored === undefined ? {} : { ignored: receipt.ignored }
  switch (receipt.status) {
    case 'delivered': {
      const { status: _, ...details } = receipt
      return { result: 'Command executed', details }
    }
    case 'ok':
      return { result: receipt.result, details: { ...receipt.details, ...ignored } }
    case 'blocked':
      return {
        result: `${command === 'send_message' ? 'Message blocked' : 'Blocked'}: ${receipt.reason}`,
        details: { reason: receipt.reason, ...ignored },
      }
    case 'held':
      return { result: `Held: ${receipt.reason}`, details: { request_id: receipt.request_id, ...ignored } }
    case 'error': {
      const { status: _, ...details } = receipt
      return {
        result: receipt.hint === undefined ? receipt.message : `${receipt.message} ${receipt.hint}`,
        details,
      }
    }
  }
}

/**
 * Prevents text from agents from ending a block, starting one or looking like a command (C17). The brackets of our
 * markers become full-width look-alikes, which people can read and the scanner ignores.
 */
export function escapeMarkers(text: string): string {
  return text
    .replace(/\[(?=\s*(?:END\s+)?ORCH(?:ESTRATOR\s+RESPONSE|UB\s+MESSAGE))/gi, '［')
    .replace(/<(?=\s*\/?\s*orc-command)/gi, '＜')
    .replace(/(?<=["'])orc_command(?=["'])/gi, 'orc＿command')
}
