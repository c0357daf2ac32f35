import type { AuditClass } from '../audit/entry.ts'
import type { ReadEntry } from '../audit/store.ts'
import { beginning } from '../base/excerpt.ts'
import type { WebhookFormat } from '../config/config.ts'

/** The id is the same for every attempt, so that receivers can dedupe. */
export interface WebhookEvent {
  id: string
  type: string
  /** When it happened. */
  at: string
  seq?: number
  actor: string
  subject?: string
  /** A readable line without secrets. */
  text: string
  data: Readonly<Record<string, unknown>>
}

/** The hash of an audit entry is unique, because entries are chained. */
export function eventOf({ hash, type, at, seq, actor, subject, text, data }: ReadEntry): WebhookEvent {
  const id = `evt_${hash.slice(0, 32)}`
  return { id, type, at, seq, actor, ...(subject === undefined ? {} : { subject }), text, data: data ?? {} }
}

/** Size limit that receivers commonly accept. */
const MAX_BYTES = 20_000
const MAX_TEXT = 2500

export function bodyOf(event: WebhookEvent, format: WebhookFormat): string {
  return format === 'slack' ? JSON.stringify({ text: chatText(event) }) : jsonBody(event)
}

function jsonBody({ id, type, at, data, ...about }: WebhookEvent): string {
  const whole = JSON.stringify({ id, type, timestamp: at, data: { ...data, ...about } })
  if (Buffer.byteLength(whole) <= MAX_BYTES) return whole
  const text = cut(about.text)
  return JSON.stringify({ id, type, timestamp: at, data: { ...about, text, truncated: true } })
}

/** The next step for a person, by event. */
const NEXT_STEP: Readonly<Record<string, string>> = {
  'human.asked': 'To decide: `orc inbox`',
  'team.halted': 'To continue: `orc service go`',
}

function chatText({ type, actor, text }: WebhookEvent): string {
  const next = NEXT_STEP[type] === undefined ? '' : `\n${NEXT_STEP[type]}`
  return `*${type}* ${harmless(actor)}: ${harmless(cut(text))}${next}`
}

/** Agents wrote the text: escape links and mentions of a whole channel. */
function harmless(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replace(/@(?=channel|all|here|everyone)/gi, '@\u200b')
}

function cut(text: string): string {
  return text.length <= MAX_TEXT ? text : `${beginning(text, MAX_TEXT)}…`
}

/** Entries about webhooks are never sent, or they would loop. */
const OWN = 'webhook.'

/** Private entries are sent only to webhooks that name their type in full. */
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
