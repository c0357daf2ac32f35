import type { AuditClass } from '../audit/entry.ts'
import type { ReadEntry } from '../audit/store.ts'
import { beginning } from '../base/excerpt.ts'
import type { WebhookFormat } from '../config/config.ts'

/** The id stays the same however often an event is sent: receivers know it by that. */
export interface WebhookEvent {
  id: string
  type: string
  /** When it happened. */
  at: string
  seq?: number
  actor: string
  subject?: string
  /** One readable line, without secrets. */
  text: string
  data: Readonly<Record<string, unknown>>
}

/** Entries are chained by their hashes, so that no two have the same. */
export function eventOf({ hash, type, at, seq, actor, subject, text, data }: ReadEntry): WebhookEvent {
  const id = `evt_${hash.slice(0, 32)}`
  return { id, type, at, seq, actor, ...(subject === undefined ? {} : { subject }), text, data: data ?? {} }
}

/** What receivers take without ado. */
const MOST_BYTES = 20_000
const MOST_TEXT = 2500

export function bodyOf(event: WebhookEvent, format: WebhookFormat): string {
  return format === 'slack' ? JSON.stringify({ text: chatText(event) }) : jsonBody(event)
}

function jsonBody({ id, type, at, data, ...about }: WebhookEvent): string {
  const whole = JSON.stringify({ id, type, timestamp: at, data: { ...data, ...about } })
  if (Buffer.byteLength(whole) <= MOST_BYTES) return whole
  const text = cut(about.text)
  return JSON.stringify({ id, type, timestamp: at, data: { ...about, text, truncated: true } })
}

/** What to do about it, where a person is to do something. */
const NEXT_STEP: Readonly<Record<string, string>> = {
  'human.asked': 'To decide: `orc inbox`',
  'human.escalated': 'To look: `orc inbox`',
  'team.halted': 'To go on: `orc go`',
}

function chatText({ type, actor, text }: WebhookEvent): string {
  const next = NEXT_STEP[type] === undefined ? '' : `\n${NEXT_STEP[type]}`
  return `*${type}* ${harmless(actor)}: ${harmless(cut(text))}${next}`
}

/** Agents wrote it: no links, no calls to a whole channel. */
function harmless(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/@(?=channel|all|here|everyone)/gi, '@\u200b')
}

function cut(text: string): string {
  return text.length <= MOST_TEXT ? text : `${beginning(text, MOST_TEXT)}…`
}

/** What webhooks say of themselves is not sent by them: it would go round in circles. */
const OWN = 'webhook.'

/** Private entries are sent only where their type is named in full. */
export function isWanted(
  patterns: readonly string[],
  { type, class: kind }: { type: string; class: AuditClass },
): boolean {
  if (type.startsWith(OWN)) return false
  if (patterns.includes(type)) return true
  if (kind === 'private') return false
  return patterns.some(
    (pattern) => pattern === '*' || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
  )
}
