import { escapeText } from '../../audit/line.ts'
import type { AuditEntry } from '../../model/audit-entry.ts'

/** What the live view shows of each kind of entry; the rest is left to `orc audit`. */
const MARKS: Record<string, { mark: string; colour: number }> = {
  'message.accepted': { mark: '✉', colour: 36 },
  'delivery.read': { mark: '✓', colour: 32 },
  'delivery.uncertain': { mark: '?', colour: 33 },
  'delivery.failed': { mark: '✗', colour: 31 },
  'command.blocked': { mark: '⛔', colour: 31 },
  'command.refused': { mark: '✗', colour: 31 },
  'security.sender_mismatch': { mark: '⚠', colour: 35 },
  'human.asked': { mark: '☝', colour: 33 },
  'human.approved': { mark: '☑', colour: 32 },
  'human.rejected': { mark: '☒', colour: 31 },
  'conversation.parked': { mark: '⏸', colour: 33 },
  'agent.status': { mark: '·', colour: 90 },
  'action.terminate_agent': { mark: '■', colour: 33 },
  'config.loaded': { mark: '↻', colour: 32 },
  'config.rejected': { mark: '↻', colour: 31 },
}

/** One readable line for an entry, or undefined for what would only be noise here. */
export function trafficLine(entry: AuditEntry, colours: boolean): string | undefined {
  const shown =
    MARKS[entry.type] ?? (entry.type.startsWith('action.') ? { mark: '■', colour: 33 } : undefined)
  if (shown === undefined) return undefined
  const time = entry.at.slice(11, 19)
  const who = entry.subject === undefined ? entry.actor : `${entry.actor} → ${entry.subject}`
  const excerpt = entry.type === 'message.accepted' ? ` — ${String(entry.data?.excerpt ?? '')}` : ''
  const text = escapeText(`${entry.text}${excerpt}`.replace(/\s+/g, ' '))
  const line = `${shown.mark} ${who.padEnd(24)} ${text}`
  return colours ? `\x1b[90m${time}\x1b[0m \x1b[${shown.colour}m${line}\x1b[0m` : `${time} ${line}`
}
