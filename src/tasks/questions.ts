import { OPERATOR } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { formatId, parseId } from '../base/ids.ts'
import type { RequestForm } from '../people/request-view.ts'
import {
  findHumanRequest,
  findOpenQuestion,
  type HumanRequestRow,
  insertHumanRequest,
  questionContext,
} from '../people/store/human-requests.ts'
import { closeUnanswered } from '../people/withdraw-request.ts'
import type { Tx } from '../store/store.ts'
import { setTimer } from '../store/timer-rows.ts'
import type { Timers } from '../store/timers.ts'
import { aboutTask } from './audit-data.ts'
import type { StoreEffect } from './core/effect.ts'
import type { Happening } from './core/event.ts'
import { addToTopic, topicOf } from './merge-notices.ts'
import { findTask } from './store/tasks.ts'
import type { QuestionKind, Task } from './task.ts'

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

export async function askPerson(
  tx: Tx,
  timers: Timers,
  task: Task,
  effect: AskPerson,
  cut: (text: string) => string,
): Promise<void> {
  const topic = isNotice(effect) ? topicOf(task, effect.reason) : undefined
  if (topic !== undefined && (await addToTopic(tx, task, { topic, reason: effect.reason }))) return
  const known = parseId('req', effect.question)
  const asks = task.questions.find(({ id }) => id === effect.question)?.kind
  const form: RequestForm = { ...effect.form, ...(asks === undefined ? {} : { asks }) }
  const key = await insertHumanRequest(tx, {
    ...(known === undefined ? {} : { id: known }),
    kind: effect.kind,
    // Where nobody waits, what is answered all the same comes as a message.
    purpose: isNotice(effect) ? 'notice' : effect.awaits ? 'task' : 'question',
    asker: task.agent,
    question: effect.text,
    reason: effect.reason,
    action: null,
    action_hash: null,
    context: questionContext(effect.task, effect.question),
    expires_at: effect.expiresAt ?? tx.now + NO_EXPIRY_MS,
    form: JSON.stringify(form),
    ...(topic === undefined ? {} : { topic }),
  })
  const id = formatId('req', key)
  tx.audit({
    type: 'human.asked',
    class: 'internal',
    actor: task.agent,
    text: `${id}: ${cut(effect.text)} (${cut(effect.reason)})`,
    data: { request_id: id, kind: effect.kind, awaits: effect.awaits, ...aboutTask(task) },
  })
  const { expiresAt } = effect
  if (expiresAt === null) return
  await setTimer(tx, 'expire_request', id, expiresAt)
  tx.afterCommit(() => timers.setFor(expiresAt))
}

/** People are told; nobody waits for what they say. */
function isNotice({ kind, awaits }: AskPerson): boolean {
  return kind === 'escalation' && !awaits
}

/**
 * The task needs no answer any more. A command that was held in its turn is then not carried out either, or it would
 * be done for a task that was cancelled, or twice for one that is tried again; gives that request. What a completed
 * task has left behind stays for people to decide.
 */
export async function withdrawRequest(
  tx: Tx,
  task: Task,
  asked: Asked,
): Promise<{ id: string; question: string } | undefined> {
  const held = await heldFor(tx, asked)
  if (held !== undefined && task.state === 'completed') return undefined
  const row = held ?? (await findOpenQuestion(tx, asked.task, asked.question))
  if (row === undefined) return undefined
  const data = { kind: row.kind, ...aboutTask(await findTask(tx, asked.task)) }
  const id = await closeUnanswered(tx, row, { why: row.question, subject: row.asker, data })
  return held === undefined || id === undefined ? undefined : { id, question: row.question }
}

async function heldFor(tx: Tx, { question }: Asked): Promise<HumanRequestRow | undefined> {
  const key = parseId('req', question)
  const row = key === undefined ? undefined : await findHumanRequest(tx, key)
  return row?.state === 'open' && row.purpose === 'command' ? row : undefined
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
