import type { AnswerForm } from '../../people/human-request.ts'
import type { EndState, Task, TaskTimer } from '../task.ts'
import type { Outcome } from './breaker.ts'
import type { Happening } from './event.ts'

export type SendKind =
  | 'delegate'
  | 'follow_up'
  | 'reminder'
  | 'answer'
  | 'query'
  | 'extension'
  | 'report'
  | 'needs_help'
  | 'review'
  | 'failed'
  | 'cancelled'

/** Carried out in the transaction that stores the task: what the database can do. */
export type StoreEffect =
  /** `wake` false: it waits in the mailbox until something else begins a turn. */
  | {
      type: 'send'
      kind: SendKind
      to: string
      task: string
      text: string
      wake: boolean
      inReplyTo?: string
    }
  | { type: 'wake_parent'; to: string; task: string; children: readonly string[]; text: string }
  /** `awaits` false: a notice. Otherwise the verdict comes back with this question's id. */
  | {
      type: 'ask_person'
      kind: 'input' | 'escalation'
      task: string
      question: string
      text: string
      reason: string
      awaits: boolean
      form?: AnswerForm
      expiresAt: number | null
    }
  /** The asker needs no answer any more. */
  | { type: 'withdraw'; task: string; question: string }
  /** A person approved: the held action may be carried out, now and once. */
  | { type: 'perform'; task: string; question: string; by: string }
  | { type: 'set_timer'; task: string; kind: TaskTimer; at: number }
  | { type: 'clear_timer'; task: string; kind: TaskTimer }
  | { type: 'record_outcome'; agent: string; outcome: Outcome }
  /** To be given to `step` for that task, in the same transaction, in the order given. */
  | { type: 'tell'; task: string; event: Happening }
  | { type: 'end'; task: string; state: EndState; reason: string }
  /** For the audit. */
  | { type: 'note'; task: string; text: string }

/** Carried out after the commit; what of it is not done yet can be told from the stored task (`pendingEffects`). */
export type OutsideEffect =
  /** See to it that the agent runs; it has mail: a task of its own, or another's claim to judge. */
  | { type: 'start_agent'; agent: string; task: string; isReview?: true }
  | { type: 'interrupt_agent'; agent: string; task: string; interrupt: number }
  | { type: 'run_checks'; task: string; claim: number; checks: readonly string[]; result: string }
  /** A model's; an agent that judges is asked by a message. */
  | { type: 'run_judge'; task: string; claim: number; judge: string; text: string; result: string }

/** The same key never stands for two effects. */
export type Keyed<E> = E & { key: string }
export type Effect = Keyed<StoreEffect> | Keyed<OutsideEffect>

/**
 * What the world outside still owes the task, told from stored state alone: so nothing is lost between the commit and
 * the deed, and no second list has to be kept. After a restart, and after `released`, the engine carries out all of it; each
 * is safe to repeat (an agent that runs is not started again; a result counts once, by the claim's number).
 */
export function pendingEffects(task: Task): Keyed<OutsideEffect>[] {
  const { id, agent, claim } = task
  const pending: Keyed<OutsideEffect>[] = []
  if (task.interrupting) {
    const interrupt = task.interrupts
    pending.push({ type: 'interrupt_agent', key: `${id}/interrupt/${interrupt}`, agent, task: id, interrupt })
  }
  if (task.unread) pending.push({ type: 'start_agent', key: `${id}/start/${task.sent}`, agent, task: id })
  if (claim?.step === 'checks') {
    const { number, result } = claim
    const { checks } = task
    pending.push({
      type: 'run_checks',
      key: `${id}/checks/${number}`,
      task: id,
      claim: number,
      checks,
      result,
    })
  }
  if (claim?.step === 'judge' && claim.review === undefined && task.judge !== null) {
    const { number, result } = claim
    const { judge, text } = task
    pending.push({
      type: 'run_judge',
      key: `${id}/judge/${number}`,
      task: id,
      claim: number,
      judge: judge.name,
      text,
      result,
    })
  }
  if (claim?.review?.taken === false && task.judge !== null) {
    const key = `${id}/review/${claim.number}.${claim.review.reminders}`
    pending.push({ type: 'start_agent', key, agent: task.judge.name, task: id, isReview: true })
  }
  return pending
}

/** When the task needs a timer of that kind, told from its state: a held or ended task has none. */
export function timerOf(task: Task, kind: TaskTimer): number | undefined {
  if (task.endedAt !== null || task.held !== null) return undefined
  if (kind !== 'wait') return task.due?.kind === kind ? task.due.at : undefined
  let first: number | undefined
  for (const { expiresAt } of task.questions) {
    if (expiresAt !== null && (first === undefined || expiresAt < first)) first = expiresAt
  }
  return first
}

/** The earliest of them. */
export function nextTimerOf(task: Task): number | undefined {
  const wait = timerOf(task, 'wait')
  const due = task.due === null ? undefined : timerOf(task, task.due.kind)
  return wait === undefined || (due !== undefined && due <= wait) ? due : wait
}
