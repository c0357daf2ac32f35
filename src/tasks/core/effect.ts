import type { AnswerForm } from '../../people/human-request.ts'
import type { EndState, Task, TaskTimer } from '../task.ts'
import type { TaskEvent } from './event.ts'
import type { WorkOutcome } from './view.ts'

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

/** Effects that the store carries out, in the transaction that stores the task. */
export type TaskStoreEffect =
  /** `wake` false: the message waits in the mailbox until something else starts a turn. */
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
  /** `awaits` false: a notice. Otherwise the verdict comes back with the id of this question. */
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
  /** The task no longer needs an answer. */
  | { type: 'withdraw'; task: string; question: string }
  /** A person approved the held action: it may be carried out once. */
  | { type: 'perform'; task: string; question: string; by: string }
  | { type: 'set_timer'; task: string; kind: TaskTimer; at: number }
  | { type: 'clear_timer'; task: string; kind: TaskTimer }
  | { type: 'record_outcome'; agent: string; outcome: WorkOutcome }
  /** An event for a relative, reduced in the same transaction and in this order. */
  | { type: 'dispatch'; task: string; event: TaskEvent }
  | { type: 'end'; task: string; state: EndState; reason: string }
  /** An audit entry. */
  | { type: 'note'; task: string; text: string }

/** Effects outside of the store, carried out after the commit. `pendingEffects` derives the unfinished ones from the task. */
export type TaskOutsideEffect =
  /** Makes sure that the agent runs, because it has mail: a task of its own, or a claim to judge. */
  | { type: 'start_agent'; agent: string; task: string; isReview?: true }
  | { type: 'interrupt_agent'; agent: string; task: string; interrupt: number }
  | { type: 'run_checks'; task: string; claim: number; checks: readonly string[]; result: string }
  /** Asks a model. An agent that judges gets a message instead. */
  | { type: 'run_judge'; task: string; claim: number; judge: string; text: string; result: string }

/** The key is unique to the effect. */
export type WithKey<E> = E & { key: string }
export type TaskEffect = WithKey<TaskStoreEffect> | WithKey<TaskOutsideEffect>

/**
 * Derives the unfinished outside effects from the stored task alone, so a crash between the commit and an effect loses
 * nothing and no second list exists. After a restart and after a halt the engine carries out all of them. Each is safe
 * to repeat: an agent that runs isn't started again, and a result counts once, by the number of its claim.
 */
export function pendingEffects(task: Task): WithKey<TaskOutsideEffect>[] {
  const { id, agent, claim } = task
  const pending: WithKey<TaskOutsideEffect>[] = []
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

/** When the task's timer of that kind is due. A held or ended task has none. */
export function timerOf(task: Task, kind: TaskTimer): number | undefined {
  if (task.endedAt !== null || task.held !== null) return undefined
  if (kind !== 'wait') return task.due?.kind === kind ? task.due.at : undefined
  let first: number | undefined
  for (const { expiresAt } of task.questions) {
    if (expiresAt !== null && (first === undefined || expiresAt < first)) first = expiresAt
  }
  return first
}

/** When the earliest timer of the task is due. */
export function nextTimerOf(task: Task): number | undefined {
  const wait = timerOf(task, 'wait')
  const due = task.due === null ? undefined : timerOf(task, task.due.kind)
  return wait === undefined || (due !== undefined && due <= wait) ? due : wait
}
