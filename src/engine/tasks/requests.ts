import { OPERATOR, ORCHESTRATOR } from '../../model/agent.ts'
import { AppError } from '../../model/errors.ts'
import { formatId, parseId } from '../../model/identifier.ts'
import type { QuestionKind, Task } from '../../model/task.ts'
import {
  decideHumanRequest,
  findOpenRequest,
  type HumanRequestRow,
  insertHumanRequest,
} from '../../store/human-requests.ts'
import type { Tx } from '../../store/store.ts'
import { clearTimer, setTimer } from '../../store/timers.ts'
import type { StoreEffect } from '../../tasks/effect.ts'
import type { Happening } from '../../tasks/happening.ts'
import type { Timers } from '../timers.ts'

type AskPerson = Extract<StoreEffect, { type: 'ask_person' }>

/** Which question of which task a request to people carries. */
export interface Asked {
  task: string
  question: string
}

/** For a request without a clock; the date is for the reader. */
const NO_EXPIRY_MS = 365 * 24 * 3600_000

export function askedIn(row: HumanRequestRow): Asked {
  return JSON.parse(row.context) as Asked
}

function contextOf({ task, question }: Asked): string {
  return JSON.stringify({ task, question })
}

export async function askPerson(
  tx: Tx,
  timers: Timers,
  task: Task,
  effect: AskPerson,
  cut: (text: string) => string,
): Promise<void> {
  const known = parseId('req', effect.question)
  const key = await insertHumanRequest(tx, {
    ...(known === undefined ? {} : { id: known }),
    kind: effect.kind,
    purpose: effect.awaits ? 'task' : 'notice',
    asker: task.agent,
    question: effect.text,
    reason: effect.reason,
    action: null,
    action_hash: null,
    context: contextOf(effect),
    expires_at: effect.expiresAt ?? tx.now + NO_EXPIRY_MS,
  })
  const id = formatId('req', key)
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor: task.agent,
    text: `${id}: ${cut(effect.text)} (${cut(effect.reason)})`,
    data: { request_id: id, kind: effect.kind, task_id: task.id },
  })
  const { expiresAt } = effect
  if (expiresAt === null) return
  await setTimer(tx, 'expire_request', id, expiresAt)
  tx.afterCommit(() => timers.setFor(expiresAt))
}

/** The task needs no answer any more. */
export async function withdrawRequest(tx: Tx, asked: Asked): Promise<void> {
  const row = await findOpenRequest(tx, 'task', contextOf(asked))
  if (row === undefined) return
  await decideHumanRequest(tx, row.id, { state: 'withdrawn', by: ORCHESTRATOR, comment: null })
  const id = formatId('req', row.id)
  await clearTimer(tx, 'expire_request', id)
  tx.audit({
    type: 'human.withdrawn',
    class: 'internal',
    actor: ORCHESTRATOR,
    subject: row.asker,
    text: `${id} needs no answer any more: ${row.question}`,
    data: { request_id: id, task_id: asked.task },
  })
}

export interface PersonsWord {
  decision: 'approve' | 'reject' | 'answer'
  comment: string | null
}

/** What a person's word on a request means to its task. */
export function eventOf(row: HumanRequestRow, kind: QuestionKind, word: PersonsWord): Happening | AppError {
  const { question } = askedIn(row)
  const { decision, comment } = word
  const by = OPERATOR
  if (decision === 'answer') {
    const answer = comment ?? ''
    if (kind === 'extension') return wants(row, 'a yes or a no', 'Use `orc approve ID` or `orc reject ID`.')
    if (kind !== 'takeover') return { type: 'user_answered', by, question, answer }
    return { type: 'reported', by, report: formatId('req', row.id), status: 'completed', result: answer }
  }
  if (kind === 'extension') {
    return decision === 'approve'
      ? { type: 'extension_granted', by, question }
      : { type: 'extension_refused', by, question, reason: comment ?? 'a person said no' }
  }
  if (kind !== 'help' && !(kind === 'takeover' && decision === 'reject')) {
    return wants(row, 'an answer', 'Use `orc answer ID TEXT`.')
  }
  return decision === 'approve'
    ? { type: 'settled', by, as: 'completed', reason: comment ?? 'a person accepted it' }
    : { type: 'settled', by, as: 'failed', reason: comment ?? 'a person gave it up' }
}

function wants(row: HumanRequestRow, what: string, hint: string): AppError {
  return new AppError('CONFLICT', `${formatId('req', row.id)} wants ${what}`, { hint })
}
