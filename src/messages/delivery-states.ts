/**
 * The delivery of each message: its state, and every move to another state. A move is stored with its evidence and
 * audited (C27). `delivery/` decides for a running agent when a message moves; this file stores it.
 *
 *   state      meaning                                     moves to
 *   ─────      ───────                                     ────────
 *   queued     waits in the mailbox                        written: handed out · read: acknowledged unseen
 *                                                          failed: withdrawn, or its bytes changed on disk
 *   written    given to a receiver, not confirmed yet      submitted, read: confirmed · uncertain: no evidence
 *                                                          queued: refused, or not acknowledged in time
 *   submitted  the agent's program has taken it            read: answered or acknowledged
 *                                                          queued, uncertain: only if an interrupt or the end of the
 *                                                          program took it out of the conversation
 *   uncertain  given to a runtime, and it is unknown       submitted, read: found in the conversation
 *              whether it arrived; it is looked up by id   queued: certainly absent
 *   read       answered or acknowledged; final             –
 *   failed     will never be delivered; final              –
 */
import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import type { Reader, Tx } from '../store/store.ts'
import { type DeliveryState, PRIORITIES, type TaskMessageKind } from './message.ts'
import { intactMail, isIntact, type Mail, type MailRow } from './messages.ts'

const OPEN = `state NOT IN ('read', 'failed')`

/** States without proof that a program has the message. */
const UNPROVEN = `state IN ('written', 'uncertain')`

/** The message handed over last is among this many of the newest ones. */
const RECENT = 200

/** The receiver is the actor of `read`; the service is the actor of every other state. */
function audit(tx: Tx, agent: string, keys: readonly number[], state: DeliveryState, evidence: string) {
  for (const key of keys) {
    const id = formatId('msg', key)
    tx.audit({
      type: `delivery.${state}`,
      class: 'internal',
      ...(state === 'read' ? { actor: agent } : { actor: ORCHESTRATOR, subject: agent }),
      text: `${id} is ${state}: ${evidence}`,
      data: { message_id: id, state, evidence },
    })
  }
}

export interface DeliveryClaim {
  agent: string
  /** When an unconfirmed message is queued again; null if it must be looked up first. */
  until: number | null
  evidence: string
  limit: number
  maxBytes: number
  /** Urgent and high priority first; otherwise oldest first. */
  byPriority?: boolean
  /** Claim only if one of the messages may begin a turn; quiet messages come along with it. */
  mustWake?: boolean
}

/**
 * The limit is part of the SQL text: SQLite plans a statement again for every bound limit, which costs more than running
 * it. There are only a few limits, and none comes from outside.
 */
const limitTo = (most: number) => `LIMIT ${Math.trunc(most)}`

/** Moves queued messages to `written`. A message that changed on disk fails, and doesn't hold up the others. */
export async function claimDeliveries(tx: Tx, claim: DeliveryClaim): Promise<Mail[]> {
  const order = claim.byPriority === true ? 'd.priority DESC, d.message' : 'd.message'
  const rows = await tx.all<MailRow>(
    `SELECT m.*, d.state, d.attempts, d.updated_at, d.evidence
       FROM (SELECT * FROM deliveries AS d
              WHERE d.recipient = ? AND d.${OPEN} AND d.state = 'queued'
              ORDER BY ${order} ${limitTo(claim.limit)} ${tx.skipLocked}) AS d
       JOIN messages AS m ON m.seq = d.message
      ORDER BY ${order}`,
    [claim.agent],
  )
  if (claim.mustWake === true && rows.every((row) => row.quiet === 1)) {
    if (rows.length < claim.limit || !(await isAwaited(tx, claim.agent))) return []
  }
  const mails: Mail[] = []
  let bytes = 0
  for (const row of rows) {
    if (!isIntact(row)) {
      await moveDeliveries(tx, claim.agent, [row.seq], 'failed', 'its bytes changed on disk')
      continue
    }
    bytes += Buffer.byteLength(row.content)
    // At least one, however large; the rest waits.
    if (mails.length > 0 && bytes > claim.maxBytes) break
    tx.run(
      `UPDATE deliveries SET state = 'written', attempts = attempts + 1, claimed_until = ?, updated_at = ?,
         evidence = ? WHERE recipient = ? AND message = ?`,
      [claim.until, tx.now, claim.evidence, claim.agent, row.seq],
    )
    audit(tx, claim.agent, [row.seq], 'written', claim.evidence)
    mails.push(intactMail({ ...row, state: 'written', attempts: row.attempts + 1, evidence: claim.evidence }))
  }
  return mails
}

/** Whether a message waits that may begin a turn. Queried only after a full turn of quiet messages. */
async function isAwaited(reader: Reader, agent: string): Promise<boolean> {
  const row = await reader.get<{ found: number }>(
    `SELECT 1 AS found FROM deliveries AS d JOIN messages AS m ON m.seq = d.message
      WHERE d.recipient = ? AND d.${OPEN} AND d.state = 'queued' AND m.quiet = 0 LIMIT 1`,
    [agent],
  )
  return row !== undefined
}

/** Whether the agent has got, or may have got, a message about the task. */
export async function wasGiven(reader: Reader, agent: string, task: number): Promise<boolean> {
  const row = await reader.get<{ found: number }>(
    `SELECT 1 AS found FROM messages AS m JOIN deliveries AS d ON d.recipient = m.recipient AND d.message = m.seq
      WHERE m.task = ? AND m.recipient = ? AND d.state NOT IN ('queued', 'failed') LIMIT 1`,
    [task, agent],
  )
  return row !== undefined
}

/** Whether the agent has got another message since the one about this task. */
export async function wasGivenElse(
  reader: Reader,
  agent: string,
  { task, since }: { task: number; since: number },
): Promise<boolean> {
  const row = await reader.get<{ found: number }>(
    `SELECT 1 AS found
       FROM (SELECT * FROM deliveries WHERE recipient = ? ORDER BY message DESC LIMIT ${RECENT}) AS d
       JOIN messages AS m ON m.seq = d.message
      WHERE d.state NOT IN ('queued', 'failed') AND d.updated_at >= ? AND (m.task IS NULL OR m.task <> ?) LIMIT 1`,
    [agent, since, task],
  )
  return row !== undefined
}

/** Withdraws queued messages of a task that are no longer needed. */
export async function withdrawQueued(
  tx: Tx,
  agent: string,
  task: number,
  evidence: string,
  kind?: TaskMessageKind,
): Promise<void> {
  const ofKind = kind === undefined ? '' : 'AND kind = ?'
  // Select by the few messages of the task: the mailbox may be long.
  const rows = await tx.all<{ message: number }>(
    `UPDATE deliveries SET state = 'failed', updated_at = ?, evidence = ?
      WHERE recipient = ? AND state = 'queued'
        AND message IN (SELECT seq FROM messages WHERE task = ? ${ofKind}) RETURNING message`,
    [tx.now, evidence, agent, task, ...(kind === undefined ? [] : [kind])],
  )
  const withdrawn = rows.map(({ message }) => message).sort((a, b) => a - b)
  audit(tx, agent, withdrawn, 'failed', evidence)
}

/** People have no mailbox: a message to them counts as read at once, because it is shown with its task. */
export function markReadByPeople(tx: Tx, recipient: string, key: number): void {
  tx.run(
    `UPDATE deliveries SET state = 'read', updated_at = ?, evidence = 'kept with the task'
      WHERE recipient = ? AND message = ?`,
    [tx.now, recipient, key],
  )
}

interface MoveOptions {
  /** An interrupt, or the end of its process, took the message out of the conversation. */
  readonly takenBack?: boolean
  /** Only messages that were handed out: text quoted by a person proves nothing about one that still waits. */
  readonly handedOut?: boolean
}

/** Moves open deliveries to a new state, and returns the keys of those that moved. */
export async function moveDeliveries(
  tx: Tx,
  agent: string,
  keys: readonly number[],
  state: DeliveryState,
  evidence: string,
  { takenBack = false, handedOut = false }: MoveOptions = {},
): Promise<number[]> {
  const isStepBack = (state === 'queued' || state === 'uncertain') && !takenBack
  const from = `${isStepBack ? UNPROVEN : OPEN}${handedOut ? ' AND attempts > 0' : ''}`
  const moved: number[] = []
  for (const key of keys) {
    const rows = await tx.all<{ message: number }>(
      `UPDATE deliveries SET state = ?, updated_at = ?, evidence = ?, claimed_until = NULL
        WHERE recipient = ? AND message = ? AND ${OPEN} AND ${from} AND state <> ? RETURNING message`,
      [state, tx.now, evidence, agent, key, state],
    )
    if (rows.length === 1) moved.push(key)
  }
  audit(tx, agent, moved, state, evidence)
  return moved
}

/** Requeues messages that were not confirmed in time. Returns their keys, and when the next one is due. */
export async function releaseExpired(
  tx: Tx,
  agent: string,
): Promise<{ released: number[]; nextDue: number | undefined }> {
  const evidence = 'no acknowledgement in time'
  const rows = await tx.all<{ message: number }>(
    `UPDATE deliveries SET state = 'queued', claimed_until = NULL, updated_at = ?, evidence = ?
      WHERE recipient = ? AND ${OPEN} AND claimed_until <= ? RETURNING message`,
    [tx.now, evidence, agent, tx.now],
  )
  const released = rows.map((row) => row.message)
  audit(tx, agent, released, 'queued', evidence)
  const next = await tx.get<{ due: number | null }>(
    `SELECT MIN(claimed_until) AS due FROM deliveries WHERE recipient = ? AND ${OPEN}`,
    [agent],
  )
  return { released, nextDue: next?.due ?? undefined }
}

/** Messages that were given to a runtime, without evidence that they arrived. */
export async function unconfirmedDeliveries(reader: Reader, agent: string): Promise<number[]> {
  const rows = await reader.all<{ message: number }>(
    `SELECT message FROM deliveries WHERE recipient = ? AND ${OPEN} AND claimed_until IS NULL
       AND ${UNPROVEN} ORDER BY message`,
    [agent],
  )
  return rows.map((row) => row.message)
}

/** Messages that an agent took after the last one it answered. */
export async function unansweredDeliveries(reader: Reader, agent: string): Promise<number[]> {
  const rows = await reader.all<{ message: number }>(
    `SELECT d.message FROM deliveries AS d
       LEFT JOIN (SELECT message, updated_at FROM deliveries WHERE recipient = ? AND state = 'read'
                   ORDER BY message DESC LIMIT 1) AS answered ON TRUE
      WHERE d.recipient = ? AND d.${OPEN} AND d.state = 'submitted' AND (answered.message IS NULL
        OR d.message > answered.message OR d.updated_at > answered.updated_at) ORDER BY d.message`,
    [agent, agent],
  )
  return rows.map((row) => row.message)
}

/** Returns the keys that belong to messages to this agent. */
export async function knownDeliveries(
  reader: Reader,
  agent: string,
  keys: readonly number[],
): Promise<number[]> {
  if (keys.length === 0) return []
  const rows = await reader.all<{ message: number }>(
    `SELECT message FROM deliveries WHERE recipient = ? AND message IN (${keys.map(() => '?').join(', ')})`,
    [agent, ...keys],
  )
  return rows.map((row) => row.message)
}

/** When a delivery last moved. Later audit entries don't concern it. */
export async function lastMoved(reader: Reader, agent: string, key: number): Promise<number | undefined> {
  const row = await reader.get<{ updated_at: number }>(
    'SELECT updated_at FROM deliveries WHERE recipient = ? AND message = ?',
    [agent, key],
  )
  return row?.updated_at
}

/** Counts open deliveries by agent and state. */
export async function countOpen(
  reader: Reader,
): Promise<{ agent: string; state: DeliveryState; count: number }[]> {
  return await reader.all(
    `SELECT recipient AS agent, state, COUNT(*) AS count FROM deliveries WHERE ${OPEN} GROUP BY recipient, state`,
  )
}

/** Counts waiting messages, up to `most`, because counting all takes longer the more there are. */
export async function countQueued(reader: Reader, agent: string, most: number): Promise<number> {
  const row = await reader.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM (
       SELECT 1 FROM deliveries WHERE recipient = ? AND ${OPEN} AND state = 'queued' ${limitTo(most)}) AS waiting`,
    [agent],
  )
  return row?.count ?? 0
}

interface UrgentMail {
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
