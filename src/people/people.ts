import { hash } from 'node:crypto'
import type { z } from 'zod'
import { ORCHESTRATOR } from '../base/agent.ts'
import { formatId } from '../base/ids.ts'
import type { Approval } from '../rules/rule.ts'
import type { MaybePromise, Reader, Store, Tx } from '../store/store.ts'
import { clearTimer, setTimer, type Timers } from '../store/timers.ts'
import type { QuestionKind } from '../tasks/task.ts'
import type { decideCommand } from './api.ts'
import type { AnswerForm, HumanRequestKind, HumanRequestState } from './human-request.ts'

export interface HumanRequestRow {
  id: number
  kind: HumanRequestKind
  /**
   * The effect of a verdict. `command`: executes the held command. `go_on`: also resumes a parked conversation.
   * `permission`: answers the dialog of an agent program. `task`: continues a task. `run`: continues an agent of a run.
   * `question`: sends the answer to the asker. `notice`: none.
   */
  purpose: string
  state: HumanRequestState
  asker: string
  question: string
  reason: string
  action: string | null
  action_hash: string | null
  context: string
  created_at: number
  /** `NEVER` for a request that doesn't expire. */
  expires_at: number
  decided_at: number | null
  decided_by: string | null
  comment: string | null
  /** Possible answers, as JSON. */
  form: string
  /** Names of the approvers, as JSON; null: everyone who may decide. */
  approvers: string | null
  quorum: number
  /** The original action, if a person has changed it. */
  asked_action: string | null
  modified_by: string | null
  /** While a notice is open, further events of the same topic are added to it. */
  topic: string | null
  /** How many events a notice summarizes. */
  count: number
}

/** A question, an approval or a notice to people. */
export interface PeopleRequest {
  kind: HumanRequestKind
  purpose: 'command' | 'go_on' | 'permission' | 'task' | 'run' | 'question' | 'notice'
  asker: string
  question: string
  reason: string
  /** The exact command that an approval executes. */
  action?: { type: string; fields: unknown }
  approval?: Approval | undefined
  form?: RequestForm
  /** Data of the room that asks. An approval is bound to it. */
  context?: string
  /** When the request expires; null: never. Notices never expire. */
  expiresAt?: number | null
  /** Enforces the expiry; omitted by rooms that have their own timer. */
  timers?: Pick<Timers, 'setFor'>
  /** While a notice is open, further events of the same topic are added to it. */
  topic?: string
  /** A key from `nextKey('req')` in this transaction, if the caller needs it earlier. */
  key?: number
  /** The actor of the audit entry; default: the asker. The asker is then its subject. */
  actor?: string
  /** Text of the audit entry; default: the question. */
  text?: string
  /** Further data of the audit entry, such as the task. */
  about?(id: string): MaybePromise<Readonly<Record<string, unknown>>>
}

/** An undecided approval expires after this time, and its command is not executed (C8, C9). */
export const APPROVAL_MS = 72 * 3600_000
/** The column takes no null. A halt moves it like every expiry, so later times mean the same. */
export const NEVER = Date.UTC(9999, 0, 1)

/** Stores a request to people; every room uses this function. */
export async function askPeople(tx: Tx, request: PeopleRequest): Promise<{ key: number; id: string }> {
  const { kind, purpose, asker, question, reason, approval, timers, actor = asker } = request
  const key = request.key ?? (await tx.nextKey('req'))
  const id = formatId('req', key)
  const expiresAt = request.expiresAt ?? null
  const action = request.action === undefined ? null : JSON.stringify(request.action)
  const bound = { asker, context: request.context ?? '{}', action }
  const hash = action === null ? null : hashOf(bound)
  tx.run(
    `INSERT INTO human_requests (id, kind, purpose, state, asker, question, reason, action, action_hash, context,
       created_at, expires_at, form, approvers, quorum, topic)
     VALUES (?, ?, ?, 'open', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      ...[key, kind, purpose, asker, question, reason, action, hash, bound.context],
      ...[tx.now, expiresAt ?? NEVER, JSON.stringify(request.form ?? {})],
      approval?.approvers === undefined ? null : JSON.stringify(approval.approvers),
      ...[approval?.quorum ?? 1, request.topic ?? null],
    ],
  )
  if (expiresAt !== null && timers !== undefined) {
    setTimer(tx, 'expire_request', id, expiresAt)
    tx.afterCommit(() => timers.setFor(expiresAt))
  }
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor,
    ...(actor === asker ? {} : { subject: asker }),
    text: `${id}: ${request.text ?? question}`,
    data: {
      request_id: id,
      kind,
      ...(purpose === 'notice' ? { awaits: false } : {}),
      ...(request.action === undefined ? {} : { command: request.action.type, action_hash: hash }),
      ...approval,
      ...(await request.about?.(id)),
    },
  })
  return { key, id }
}

/** Binds an approval to the exact action and to the speaker in whose name it is executed. */
export function hashOf({
  asker,
  context,
  action,
}: Pick<HumanRequestRow, 'asker' | 'context' | 'action'>): string {
  return hash('sha256', JSON.stringify([asker, context, action]))
}

export async function findHumanRequest(reader: Reader, id: number): Promise<HumanRequestRow | undefined> {
  return await reader.get<HumanRequestRow>('SELECT * FROM human_requests WHERE id = ?', [id])
}

/** Locks the request: until the transaction ends, no other daemon decides on it or counts its approvals. */
export async function lockHumanRequest(tx: Tx, id: number): Promise<HumanRequestRow | undefined> {
  const [row] = await tx.all<HumanRequestRow>(
    'UPDATE human_requests SET state = state WHERE id = ? RETURNING *',
    [id],
  )
  return row
}

/** Stores a person's change of the held action; the original action is kept. */
export async function modifyHumanRequest(
  tx: Tx,
  { id, action: before, asked_action }: HumanRequestRow,
  changed: Pick<
    HumanRequestRow,
    'action' | 'action_hash' | 'question' | 'approvers' | 'quorum' | 'modified_by'
  >,
): Promise<void> {
  tx.run(
    `UPDATE human_requests SET action = ?, action_hash = ?, question = ?, approvers = ?, quorum = ?, modified_by = ?,
       asked_action = ? WHERE id = ? AND state = 'open'`,
    [
      changed.action,
      changed.action_hash,
      changed.question,
      changed.approvers,
      changed.quorum,
      changed.modified_by,
      asked_action ?? before,
      id,
    ],
  )
}

/** The column `context` of a question of a task. */
export function questionContext(task: string, question: string): string {
  return JSON.stringify({ task, question })
}

/** The open request for this question of this task. */
export async function findOpenQuestion(
  reader: Reader,
  task: string,
  question: string,
): Promise<HumanRequestRow | undefined> {
  return await reader.get<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND purpose = 'task' AND context = ?`,
    [questionContext(task, question)],
  )
}

/** The request of a run with this context. */
export async function findRunRequest(reader: Reader, context: string): Promise<HumanRequestRow | undefined> {
  return await reader.get<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE purpose = 'run' AND context = ? ORDER BY id DESC LIMIT 1`,
    [context],
  )
}

/** Locks the open notice on a topic, so that no other daemon adds to it during the transaction. */
export async function lockTopic(tx: Tx, topic: string): Promise<HumanRequestRow | undefined> {
  return await tx.get<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND topic = ? ORDER BY id LIMIT 1 ${tx.lockRow}`,
    [topic],
  )
}

/** Adds one event to a notice. */
export function addToNotice(
  tx: Tx,
  id: number,
  { question, context }: Pick<HumanRequestRow, 'question' | 'context'>,
): void {
  tx.run('UPDATE human_requests SET question = ?, context = ?, count = count + 1 WHERE id = ?', [
    question,
    context,
    id,
  ])
}

export async function openRequestsOf(reader: Reader, asker: string): Promise<HumanRequestRow[]> {
  return await reader.all<HumanRequestRow>(
    `SELECT * FROM human_requests WHERE state = 'open' AND asker = ? ORDER BY id`,
    [asker],
  )
}

/** The newest requests, oldest first; `asker` limits them to one agent. */
export async function readHumanRequests(
  reader: Reader,
  state: 'open' | 'all',
  limit: number,
  asker?: string,
): Promise<HumanRequestRow[]> {
  const conditions = [
    ...(state === 'open' ? [`state = 'open'`] : []),
    ...(asker === undefined ? [] : ['asker = ?']),
  ]
  const where = conditions.length === 0 ? '' : `WHERE ${conditions.join(' AND ')}`
  const rows = await reader.all<HumanRequestRow>(
    `SELECT * FROM human_requests ${where} ORDER BY id DESC LIMIT ?`,
    [...(asker === undefined ? [] : [asker]), limit],
  )
  return rows.reverse()
}

export async function countOpenRequests(reader: Reader): Promise<number> {
  const row = await reader.get<{ count: number }>(
    `SELECT COUNT(*) AS count FROM human_requests WHERE state = 'open'`,
  )
  return row?.count ?? 0
}

/** Closes an open request; false if it was closed before, so that a verdict counts once. */
export async function decideHumanRequest(
  tx: Tx,
  id: number,
  verdict: { state: Exclude<HumanRequestState, 'open'>; by: string; comment: string | null },
): Promise<boolean> {
  const rows = await tx.all<{ id: number }>(
    `UPDATE human_requests SET state = ?, decided_at = ?, decided_by = ?, comment = ?
      WHERE id = ? AND state = 'open' RETURNING id`,
    [verdict.state, tx.now, verdict.by, verdict.comment, id],
  )
  return rows.length === 1
}

/** A person's approval of one action, identified by its hash. */
export interface ApprovalRow {
  request: number
  person: string
  action_hash: string
  comment: string | null
  at: number
}

/** Returns false if that person has approved that action before: each person counts once. */
export async function insertApproval(tx: Tx, approval: Omit<ApprovalRow, 'at'>): Promise<boolean> {
  const rows = await tx.all<{ request: number }>(
    `INSERT INTO approvals (request, person, action_hash, comment, at) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (request, person, action_hash) DO NOTHING RETURNING request`,
    [approval.request, approval.person, approval.action_hash, approval.comment, tx.now],
  )
  return rows.length === 1
}

/** Approvals of these requests, oldest first, including those of actions that were changed since. */
export async function readApprovals(reader: Reader, requests: readonly number[]): Promise<ApprovalRow[]> {
  if (requests.length === 0) return []
  const markers = requests.map(() => '?').join(', ')
  return await reader.all<ApprovalRow>(
    `SELECT * FROM approvals WHERE request IN (${markers}) ORDER BY request, at, person`,
    [...requests],
  )
}

/** Deletes approvals of an action that was changed; the audit keeps them. */
export function forgetApprovals(tx: Tx, request: number): void {
  tx.run('DELETE FROM approvals WHERE request = ?', [request])
}

/** Finds a request whose stored action no longer matches the hash that its verdict is bound to. */
export async function findChangedRequest(store: Store): Promise<string | undefined> {
  const rows = store.stream<Pick<HumanRequestRow, 'id' | 'asker' | 'context' | 'action' | 'action_hash'>>(
    'SELECT id, asker, context, action, action_hash FROM human_requests WHERE action IS NOT NULL ORDER BY id',
  )
  for await (const row of rows) {
    if (hashOf(row) !== row.action_hash) {
      return `The action of ${formatId('req', row.id)} changed since it was requested`
    }
  }
  return undefined
}

interface Notice {
  /** The agent that the notice is about. */
  readonly agent: string
  readonly question: string
  readonly reason: string
}

/** Puts a notice into the inbox. It needs no decision. */
export async function notifyPeople(tx: Tx, { agent, question, reason }: Notice): Promise<void> {
  const actor = ORCHESTRATOR
  await askPeople(tx, { kind: 'escalation', purpose: 'notice', asker: agent, question, reason, actor })
}

interface Withdrawal {
  /** Shown to people. */
  why: string
  /** Stored with the request. */
  comment?: string
  subject?: string
  data: Readonly<Record<string, unknown>>
}

/** Closes an open request that no longer needs an answer. Returns its id; undefined if it was already closed. */
export async function withdrawHumanRequest(
  tx: Tx,
  { id: key }: Pick<HumanRequestRow, 'id'>,
  { why, comment, subject, data }: Withdrawal,
): Promise<string | undefined> {
  const decision = { state: 'withdrawn', by: ORCHESTRATOR, comment: comment ?? null } as const
  if (!(await decideHumanRequest(tx, key, decision))) return undefined
  const id = formatId('req', key)
  clearTimer(tx, 'expire_request', id)
  tx.audit({
    type: 'human.withdrawn',
    class: 'internal',
    actor: ORCHESTRATOR,
    ...(subject === undefined ? {} : { subject }),
    text: `${id} was withdrawn: ${why}`,
    data: { request_id: id, ...data },
  })
  return id
}

/** The column `form`: possible answers, and which kind of question a task asks. */
export interface RequestForm extends AnswerForm {
  readonly asks?: QuestionKind
}

/** A person's decision on a request. */
export type HumanVerdict = Omit<z.output<typeof decideCommand.fields>, 'id'>

/** `receipt`: of the held command, if it was executed. */
export type Decided = z.output<typeof decideCommand.details>
