import { hash } from 'node:crypto'
import type { z } from 'zod'
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import { type Reader, type SqlValue, storable, type Tx } from '../store/store.ts'
import type { MailSchema } from './api.ts'
import {
  DELIVERY_STATES,
  type DeliveryState,
  type Message,
  PRIORITIES,
  type Priority,
  type TaskMessageKind,
} from './message.ts'

export interface NewMessage {
  from: string
  to: string
  title: string
  content: string
  priority: Priority
  inReplyTo?: number | undefined
  /** Without it, the message begins a new conversation. */
  correlation?: number | undefined
  hop: number
  /** A key from `nextKey('msg')` in this transaction, if the caller needs it earlier. */
  key?: number | undefined
  /** A quiet message begins no turn. */
  task?: { key: number; kind: TaskMessageKind; quiet: boolean }
}

export interface MessageRow {
  seq: number
  sender: string
  recipient: string
  title: string
  content: string
  priority: number
  in_reply_to: number | null
  correlation: number
  hop: number
  at: number
  digest: string
  task: number | null
  kind: TaskMessageKind | null
  quiet: number
}

export interface MailRow extends MessageRow {
  state: DeliveryState
  attempts: number
  updated_at: number
  evidence: string | null
}

/** A message with the state of its delivery. */
export type Mail = Message & {
  delivery: DeliveryState
  attempts: number
  evidence?: string
}

/** Stores the message and queues its delivery in one transaction. */
export async function insertMessage(tx: Tx, message: NewMessage): Promise<{ key: number; digest: string }> {
  const key = message.key ?? (await tx.nextKey('msg'))
  const priority = PRIORITIES.indexOf(message.priority)
  const row: Omit<MessageRow, 'digest'> = {
    seq: key,
    sender: message.from,
    recipient: message.to,
    title: storable(message.title),
    content: storable(message.content),
    priority,
    in_reply_to: message.inReplyTo ?? null,
    correlation: message.correlation ?? key,
    hop: message.hop,
    at: tx.now,
    task: message.task?.key ?? null,
    kind: message.task?.kind ?? null,
    quiet: message.task?.quiet === true ? 1 : 0,
  }
  const digest = digestOf(digested(row))
  tx.run(
    `INSERT INTO messages
       (seq, sender, recipient, title, content, priority, in_reply_to, correlation, hop, at, task, kind, quiet, digest)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [...columns(row), row.task, row.kind, row.quiet, digest],
  )
  tx.run(
    `INSERT INTO deliveries (recipient, message, priority, state, attempts, updated_at)
     VALUES (?, ?, ?, 'queued', 0, ?)`,
    [message.to, key, priority, tx.now],
  )
  return { key, digest }
}

/** The digest covers the whole message. The audit stores it too, so a flipped bit or an edit is noticed. */
function digested(row: Omit<MessageRow, 'digest'>): SqlValue[] {
  // Without task fields, as in older messages, whose digests must still match.
  if (row.task === null && row.kind === null && row.quiet === 0) return columns(row)
  return [...columns(row), row.task, row.kind, row.quiet]
}

function columns(row: Omit<MessageRow, 'digest'>): SqlValue[] {
  const { seq, sender, recipient, title, content, priority, in_reply_to, correlation, hop, at } = row
  return [seq, sender, recipient, title, content, priority, in_reply_to, correlation, hop, at]
}

function digestOf(fields: SqlValue[]): string {
  return hash('sha256', JSON.stringify(fields))
}

export function isIntact(row: MessageRow): boolean {
  return row.digest === digestOf(digested(row))
}

export function toMail(row: MailRow): Mail {
  if (!isIntact(row) || !DELIVERY_STATES.includes(row.state)) {
    throw new AppError('STORE_CORRUPT', `${formatId('msg', row.seq)} was changed after it was stored`, {
      hint: 'Its bytes changed on disk. Run `orc service doctor`, and restore the store from a backup.',
    })
  }
  return intactMail(row)
}

/** For callers that have checked the digest. */
export function intactMail(row: MailRow): Mail {
  const mail: Mail = {
    id: formatId('msg', row.seq),
    from: row.sender,
    to: row.recipient,
    title: row.title,
    content: row.content,
    priority: PRIORITIES[row.priority]!,
    correlationId: formatId('msg', row.correlation),
    hop: row.hop,
    at: new Date(row.at).toISOString(),
    delivery: row.state,
    attempts: row.attempts,
  }
  if (row.in_reply_to !== null) mail.inReplyTo = formatId('msg', row.in_reply_to)
  if (row.evidence !== null) mail.evidence = row.evidence
  if (row.task !== null && row.kind !== null) mail.task = { id: formatId('task', row.task), kind: row.kind }
  return mail
}

export type MailboxFilter = 'unread' | 'all' | 'urgent'

/**
 * A message that was handed out and isn't acknowledged yet counts as neither read nor unread. The first condition repeats
 * that of the index of open deliveries, so that the index is used.
 */
const FILTERS: Record<MailboxFilter, string> = {
  all: '',
  unread: `AND d.state NOT IN ('read', 'failed') AND d.state IN ('queued', 'uncertain')`,
  urgent: `AND d.state NOT IN ('read', 'failed') AND d.state IN ('queued', 'uncertain') AND d.priority = ${PRIORITIES.indexOf('urgent')}`,
}

const MAIL = `SELECT m.*, d.state, d.attempts, d.updated_at, d.evidence
  FROM deliveries d JOIN messages m ON m.seq = d.message`

/** SQL of a mailbox in order; the caller reads it whole, in pages, or as a stream. */
export function mailboxQuery(
  agent: string,
  filter: MailboxFilter,
  page: { after?: number; limit?: number } = {},
) {
  const limit = page.limit === undefined ? '' : 'LIMIT ?'
  const sql = `${MAIL} WHERE d.recipient = ? AND d.message > ? ${FILTERS[filter]} ORDER BY d.message ${limit}`
  const params: (string | number)[] = [agent, page.after ?? 0]
  if (page.limit !== undefined) params.push(page.limit)
  return { sql, params }
}

export async function readMailbox(
  reader: Reader,
  agent: string,
  filter: MailboxFilter,
  page: { after?: number; limit?: number } = {},
): Promise<Mail[]> {
  const { sql, params } = mailboxQuery(agent, filter, page)
  return (await reader.all<MailRow>(sql, params)).map(toMail)
}

export async function findMail(reader: Reader, key: number): Promise<Mail | undefined> {
  const row = await reader.get<MailRow>(`${MAIL} AND d.recipient = m.recipient WHERE m.seq = ?`, [key])
  return row === undefined ? undefined : toMail(row)
}

interface LogQuery {
  since?: number
  agent?: string
  /** Only messages between `agent` and this one. */
  with?: string
  /** Only messages of the thread that this one began. */
  thread?: number
  /** Only messages older than this one. */
  before?: number
  /** Only messages that one of these sent or received. */
  parties?: readonly string[]
  limit: number
}

/** The newest messages, oldest first: the communication log (S1.8, S1.14). */
export async function readLog(reader: Reader, query: LogQuery): Promise<Mail[]> {
  const parts = ['1 = 1']
  const params: (string | number)[] = []
  if (query.since !== undefined) {
    parts.push('m.at >= ?')
    params.push(query.since)
  }
  if (query.thread !== undefined) {
    // No message of a thread is older than its first.
    parts.push('m.correlation = ? AND m.seq >= ?')
    params.push(query.thread, query.thread)
  }
  if (query.before !== undefined) {
    parts.push('m.seq < ?')
    params.push(query.before)
  }
  const both = query.with === undefined ? undefined : [query.with]
  for (const names of [query.agent === undefined ? undefined : [query.agent], both, query.parties]) {
    if (names === undefined) continue
    const list = names.length === 0 ? 'NULL' : names.map(() => '?').join(', ')
    parts.push(`(m.sender IN (${list}) OR m.recipient IN (${list}))`)
    params.push(...names, ...names)
  }
  const rows = await reader.all<MailRow>(
    `SELECT m.*, d.state, d.attempts, d.updated_at, d.evidence
       FROM messages m JOIN deliveries d ON d.recipient = m.recipient AND d.message = m.seq
      WHERE ${parts.join(' AND ')} ORDER BY m.seq DESC LIMIT ?`,
    [...params, query.limit],
  )
  return rows.reverse().map(toMail)
}

/** The messages of a task, in order (S2.18). */
export async function mailOfTask(reader: Reader, task: number): Promise<Mail[]> {
  const rows = await reader.all<MailRow>(
    `${MAIL} AND d.recipient = m.recipient WHERE m.task = ? ORDER BY m.seq`,
    [task],
  )
  return rows.map(toMail)
}

/** Delivery states of all messages of a tree of tasks. */
export async function deliveriesOfTree(
  reader: Reader,
  root: number,
): Promise<{ id: string; state: DeliveryState; attempts: number }[]> {
  const rows = await reader.all<{ seq: number; state: DeliveryState; attempts: number }>(
    `SELECT m.seq, d.state, d.attempts
       FROM tasks t JOIN messages m ON m.task = t.id
       JOIN deliveries d ON d.recipient = m.recipient AND d.message = m.seq
      WHERE t.id = ? OR (t.root = ? AND t.parent IS NOT NULL) ORDER BY m.seq`,
    [root, root],
  )
  return rows.map(({ seq, state, attempts }) => ({ id: formatId('msg', seq), state, attempts }))
}

/** The tasks that these messages are about. */
export async function tasksOfMessages(
  reader: Reader,
  keys: readonly number[],
): Promise<{ seq: number; task: number; kind: TaskMessageKind; sender: string; recipient: string }[]> {
  if (keys.length === 0) return []
  return await reader.all(
    `SELECT seq, task, kind, sender, recipient FROM messages
      WHERE seq IN (${keys.map(() => '?').join(', ')}) AND task IS NOT NULL ORDER BY seq`,
    [...keys],
  )
}

/** Whether a message waits for the agent about a task that it delegated for this one. */
export async function hasMailOfChildren(reader: Reader, agent: string, task: number): Promise<boolean> {
  const row = await reader.get(
    `SELECT 1 AS found FROM deliveries
       JOIN messages ON messages.seq = deliveries.message JOIN tasks ON tasks.id = messages.task
      WHERE deliveries.recipient = ? AND deliveries.state NOT IN ('read', 'failed', 'submitted') AND tasks.parent = ?
      LIMIT 1`,
    [agent, task],
  )
  return row !== undefined
}

/** The first message of a tree of tasks: all its messages are one conversation. */
export async function firstOfTask(reader: Reader, task: number): Promise<number | undefined> {
  const row = await reader.get<{ seq: number | null }>(
    'SELECT MIN(seq) AS seq FROM messages WHERE task = ?',
    [task],
  )
  return row?.seq ?? undefined
}

/** A message as agents and clients see it (C10). */
export function wireMail(mail: Mail): z.output<typeof MailSchema> {
  return {
    id: mail.id,
    from: mail.from,
    to: mail.to,
    title: mail.title,
    content: mail.content,
    priority: mail.priority,
    at: mail.at,
    delivery: mail.delivery,
    attempts: mail.attempts,
    correlation_id: mail.correlationId,
    ...(mail.inReplyTo === undefined ? {} : { in_reply_to: mail.inReplyTo }),
    ...(mail.task === undefined ? {} : { task_id: mail.task.id, kind: mail.task.kind }),
  }
}

/** Size limit of one answer: a model reads it, and it is sent in one piece. */
const ANSWER_BYTES = 4_000_000

/** The first messages that fit into an answer; at least one, however large. */
export function withinBytes(mails: readonly Mail[]): Mail[] {
  let bytes = 0
  const end = mails.findIndex((mail, index) => {
    bytes += Buffer.byteLength(mail.content)
    return index > 0 && bytes > ANSWER_BYTES
  })
  return end === -1 ? [...mails] : mails.slice(0, end)
}
