import type { Reader, Tx } from '../../store/store.ts'
import type { DeliveryState, TaskMessageKind } from '../message.ts'
import type { Mail, MailRow } from './messages.ts'
import { intactMail, isIntact } from './messages.ts'

/** The ladder (C27): a step down it never happens; what was not confirmed goes back to the queue and is tried again. */
const OPEN = `state NOT IN ('read', 'failed')`

/** What an agent was given last is among so many of its messages. */
const RECENT = 200

export const DAMAGED = 'its bytes changed on disk'

export interface Claim {
  agent: string
  /** When an unconfirmed one comes again; null when it must first be looked for. */
  until: number | null
  evidence: string
  limit: number
  maxBytes: number
  /** Urgent and high before the others, for whoever takes them one by one; otherwise strictly as they came. */
  byPriority?: boolean
  /** Nothing, unless there is something that may begin a turn; what is quiet comes along with it. */
  mustWake?: boolean
  /** A message whose bytes changed on disk is never handed out, and must not keep the others back. */
  onDamaged?(key: number): void
}

/**
 * In the text of the statement: SQLite plans one anew each time that a limit is bound to it, which takes longer than all
 * the rest of it, on the way of every message. Limits are few and of our own making.
 */
const limitTo = (most: number) => `LIMIT ${Math.trunc(most)}`

/** Hands queued messages out: they are now `written`, and come again unless their receiver confirms them. */
export async function claimDeliveries(tx: Tx, claim: Claim): Promise<Mail[]> {
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
      await moveDeliveries(tx, claim.agent, [row.seq], 'failed', DAMAGED)
      claim.onDamaged?.(row.seq)
      continue
    }
    bytes += Buffer.byteLength(row.content)
    // At least one, however large; the rest waits for the next time.
    if (mails.length > 0 && bytes > claim.maxBytes) break
    tx.run(
      `UPDATE deliveries SET state = 'written', attempts = attempts + 1, claimed_until = ?, updated_at = ?,
         evidence = ? WHERE recipient = ? AND message = ?`,
      [claim.until, tx.now, claim.evidence, claim.agent, row.seq],
    )
    mails.push(intactMail({ ...row, state: 'written', attempts: row.attempts + 1, evidence: claim.evidence }))
  }
  return mails
}

/** Whether anything waits that may begin a turn: asked only behind a whole turn of quiet messages. */
async function isAwaited(reader: Reader, agent: string): Promise<boolean> {
  const row = await reader.get<{ found: number }>(
    `SELECT 1 AS found FROM deliveries AS d JOIN messages AS m ON m.seq = d.message
      WHERE d.recipient = ? AND d.${OPEN} AND d.state = 'queued' AND m.quiet = 0 LIMIT 1`,
    [agent],
  )
  return row !== undefined
}

/** Whether the agent has anything of the task, or may have. */
export async function wasGiven(reader: Reader, agent: string, task: number): Promise<boolean> {
  const row = await reader.get<{ found: number }>(
    `SELECT 1 AS found FROM messages AS m JOIN deliveries AS d ON d.recipient = m.recipient AND d.message = m.seq
      WHERE m.task = ? AND m.recipient = ? AND d.state NOT IN ('queued', 'failed') LIMIT 1`,
    [task, agent],
  )
  return row !== undefined
}

/** Whether the agent has something else than that task before it, which it was given since. */
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

/** What of a task still waits for its reader and is of no use any more. Gives the keys. */
export async function withdrawQueued(
  tx: Tx,
  agent: string,
  task: number,
  evidence: string,
  kind?: TaskMessageKind,
): Promise<number[]> {
  const ofKind = kind === undefined ? '' : 'AND m.kind = ?'
  // By the few messages of the task: the mailbox may be long.
  const queued = await tx.all<{ message: number }>(
    `SELECT d.message FROM messages AS m
       JOIN deliveries AS d ON d.recipient = m.recipient AND d.message = m.seq
      WHERE m.task = ? AND m.recipient = ? AND d.state = 'queued' ${ofKind} ${tx.lockRow}`,
    [task, agent, ...(kind === undefined ? [] : [kind])],
  )
  for (const { message } of queued) {
    tx.run(
      `UPDATE deliveries SET state = 'failed', updated_at = ?, evidence = ? WHERE recipient = ? AND message = ?`,
      [tx.now, evidence, agent, message],
    )
  }
  return queued.map(({ message }) => message)
}

/** From where a step back is possible: what a process has surely taken is not doubted while it lives. */
const UNPROVEN = `state IN ('written', 'uncertain')`

export interface Move {
  /** Out of the conversation, by our own interrupt or by the end of the process that took them. */
  readonly takenBack?: boolean
  /** Only what was handed out at least once: a person may quote the frame of a message that still waits. */
  readonly handedOut?: boolean
}

/** Moves open deliveries to a new step and gives the keys of those that moved. */
export async function moveDeliveries(
  tx: Tx,
  agent: string,
  keys: readonly number[],
  state: DeliveryState,
  evidence: string,
  { takenBack = false, handedOut = false }: Move = {},
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
  return moved
}

/** What was handed out and not confirmed in time goes back to the queue. Gives the keys, and when to look again. */
export async function releaseExpired(
  tx: Tx,
  agent: string,
): Promise<{ released: number[]; nextDue: number | undefined }> {
  const rows = await tx.all<{ message: number }>(
    `UPDATE deliveries SET state = 'queued', claimed_until = NULL, updated_at = ?,
       evidence = 'no acknowledgement in time'
      WHERE recipient = ? AND ${OPEN} AND claimed_until <= ? RETURNING message`,
    [tx.now, agent, tx.now],
  )
  const next = await tx.get<{ due: number | null }>(
    `SELECT MIN(claimed_until) AS due FROM deliveries WHERE recipient = ? AND ${OPEN}`,
    [agent],
  )
  return { released: rows.map((row) => row.message), nextDue: next?.due ?? undefined }
}

/** Messages that were given to a runtime and of which nobody knows whether they arrived. */
export async function doubtfulDeliveries(reader: Reader, agent: string): Promise<number[]> {
  const rows = await reader.all<{ message: number }>(
    `SELECT message FROM deliveries WHERE recipient = ? AND ${OPEN} AND claimed_until IS NULL
       AND state IN ('written', 'uncertain') ORDER BY message`,
    [agent],
  )
  return rows.map((row) => row.message)
}

/** What an agent took after the last message that it answered: a later one, or an earlier one that it got later. */
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

/** Those of the keys that are messages to this agent. */
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

/** When a delivery last moved: nothing in the log after that concerns it. */
export async function lastMoved(reader: Reader, agent: string, key: number): Promise<number | undefined> {
  const row = await reader.get<{ updated_at: number }>(
    'SELECT updated_at FROM deliveries WHERE recipient = ? AND message = ?',
    [agent, key],
  )
  return row?.updated_at
}

/** Open deliveries by state, for the metrics. Read from the index of open ones only. */
export async function countOpen(
  reader: Reader,
): Promise<{ agent: string; state: DeliveryState; count: number }[]> {
  return await reader.all(
    `SELECT recipient AS agent, state, COUNT(*) AS count FROM deliveries WHERE ${OPEN} GROUP BY recipient, state`,
  )
}

/** How many wait, up to `most`: counting on would take the longer the more there are. */
export async function countQueued(reader: Reader, agent: string, most: number): Promise<number> {
  const row = await reader.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM (
       SELECT 1 FROM deliveries WHERE recipient = ? AND ${OPEN} AND state = 'queued' ${limitTo(most)}) AS waiting`,
    [agent],
  )
  return row?.count ?? 0
}
