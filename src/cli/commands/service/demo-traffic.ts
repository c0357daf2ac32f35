import { escapeText } from '../../../audit/line.ts'
import type { AuditEntry } from '../../../model/audit-entry.ts'
import { paint, type Style } from '../../output/print.ts'

/** What the live view shows of each kind of entry; the rest is left to `orc audit`. */
const MARKS: Record<string, { mark: string; style: Style }> = {
  'message.accepted': { mark: '✉', style: 'cyan' },
  'delivery.read': { mark: '✓', style: 'green' },
  'delivery.uncertain': { mark: '?', style: 'yellow' },
  'delivery.failed': { mark: '✗', style: 'red' },
  'command.blocked': { mark: '⛔', style: 'red' },
  'command.refused': { mark: '✗', style: 'red' },
  'security.sender_mismatch': { mark: '⚠', style: 'magenta' },
  'human.asked': { mark: '☝', style: 'yellow' },
  'human.approved': { mark: '☑', style: 'green' },
  'human.rejected': { mark: '☒', style: 'red' },
  'conversation.parked': { mark: '⏸', style: 'yellow' },
  'agent.status': { mark: '·', style: 'grey' },
  'action.terminate_agent': { mark: '■', style: 'yellow' },
  'run.begun': { mark: '▶', style: 'cyan' },
  'run.node': { mark: '▸', style: 'cyan' },
  'run.ended': { mark: '■', style: 'green' },
  'config.loaded': { mark: '↻', style: 'green' },
  'config.rejected': { mark: '↻', style: 'red' },
}

/** Of each agent of a run its beginnings and its ends. */
function isPassing({ type, data }: AuditEntry): boolean {
  return type === 'run.node' && data?.state === 'validating'
}

/** One readable line for an entry, or undefined for what would only be noise here. */
export function trafficLine(entry: AuditEntry): string | undefined {
  const shown =
    MARKS[entry.type] ?? (entry.type.startsWith('action.') ? { mark: '■', style: 'yellow' } : undefined)
  if (shown === undefined || isPassing(entry)) return undefined
  const time = entry.at.slice(11, 19)
  const who = entry.subject === undefined ? entry.actor : `${entry.actor} → ${entry.subject}`
  const excerpt = typeof entry.data?.excerpt === 'string' ? ` — ${entry.data.excerpt}` : ''
  const text = escapeText(`${entry.text}${excerpt}`.replace(/\s+/g, ' '))
  const line = `${shown.mark} ${who.padEnd(24)} ${text}`
  return `${paint('grey', time)} ${paint(shown.style, line)}`
}
