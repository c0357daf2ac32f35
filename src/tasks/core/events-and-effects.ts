import type { TaskMessageKind } from '../../messages/message.ts'
import type { AnswerForm } from '../../people/human-request.ts'
import type { EndState, Findings, ReportStatus, Task, TaskTimer } from '../task.ts'
import type { WorkOutcome } from './circuit-breaker.ts'

/** `by` is the sender as the transport knows it (C3): an agent, `operator`, or `orchestrator` for the service itself. */
interface By {
  by: string
}

/** Everything that can happen to one task. The ids of questions and reports are the ids of their messages or requests. */
export type TaskEvent =
  // Delivery to the worker
  | { type: 'delegated' }
  | ({ type: 'acknowledged' } & By)
  | ({ type: 'started' } & By)
  | { type: 'ack_timed_out' }
  | { type: 'retry_due' }
  | { type: 'deadline_passed' }
  | ({ type: 'worker_exited'; why: string } & By)
  | ({ type: 'worker_unreachable'; why: string; recoverable: boolean } & By)
  /** The interrupt that the task ordered has been carried out. */
  | { type: 'interrupted'; interrupt: number }
  // From the worker
  | ({ type: 'child_delegated'; child: string; requiresResponse: boolean } & By)
  | ({ type: 'query_asked'; question: string; to: string; text: string; requiresResponse: boolean } & By)
  /** `awaits` false: the worker continues, and an answer would come as a message. */
  | ({
      type: 'user_asked'
      question: string
      text: string
      context?: string
      awaits?: boolean
      form?: AnswerForm
    } & By)
  | ({ type: 'approval_asked'; question: string; text: string } & By)
  | ({ type: 'extension_requested'; question: string; seconds: number; reason: string } & By)
  /** `problem`: how the result breaks its schema. */
  | ({ type: 'reported'; report: string; status: ReportStatus; result: string; problem?: string } & By)
  /** `responded`: the worker reported, asked or delegated in this turn, or has unread mail from its children. */
  | ({ type: 'turn_ended'; responded: boolean; lastWords: string } & By)
  // Answers. The task's id also names a question: the last one put to the sender.
  | ({ type: 'answered'; question: string; answer: string } & By)
  /** `text` tells the worker the verdict, and the result of a command that ran. */
  | ({
      type: 'approval_decided'
      question: string
      verdict: 'approved' | 'modified' | 'rejected' | 'expired'
      text: string
    } & By)
  | ({ type: 'extension_granted'; question: string } & By)
  | ({ type: 'extension_refused'; question: string; reason: string } & By)
  /** A request to a person expired. */
  | { type: 'question_expired'; question: string }
  | { type: 'wait_timed_out' }
  // Decisions of the delegator or a person
  | ({ type: 'followed_up'; text: string } & By)
  | ({ type: 'settled'; as: 'completed' | 'failed' | 'skipped'; reason: string } & By)
  | ({ type: 'cancelled'; reason: string } & By)
  | ({ type: 'taken_over' } & By)
  | ({ type: 'held'; reason: string } & By)
  | ({ type: 'released' } & By)
  // Validation
  /** The claim left the queue: checks of one folder run one at a time, and so do judges beyond a limit. */
  | { type: 'validation_began'; claim: number; step: 'checks' | 'judge' }
  | { type: 'checks_passed'; claim: number; evidence: string; findings?: Findings }
  | { type: 'checks_failed'; claim: number; evidence: string; findings?: Findings }
  | ({ type: 'judged'; claim: number; completed: boolean; reason: string } & By)
  /** The reviewer's runtime took the message. */
  | ({ type: 'review_taken' } & By)
  | ({ type: 'review_turn_ended'; lastWords: string } & By)
  /** The reviewer exited or cannot be started. */
  | ({ type: 'review_lost'; why: string } & By)
  | { type: 'validation_gave_up'; claim: number; why: string }
  | { type: 'validation_timed_out' }
  // From relatives, by the effect `dispatch`
  | { type: 'child_changed'; child: string }
  | { type: 'parent_ended'; as: EndState; reason: string }

export type TaskEventType = TaskEvent['type']
export type TaskEventOf<T extends TaskEventType> = Extract<TaskEvent, { type: T }>

/** The event that a due timer of each kind stands for. */
export const ON_DUE: Record<TaskTimer, TaskEvent> = {
  ack: { type: 'ack_timed_out' },
  retry: { type: 'retry_due' },
  deadline: { type: 'deadline_passed' },
  validation: { type: 'validation_timed_out' },
  wait: { type: 'wait_timed_out' },
}

/**
 * Senders that an event with a `by` is accepted from; the others come from the service itself. `delegator`: or a person.
 * `judge`: the agent that judges the task's claims (the service for a model), or a person. `handler`: the handler checks.
 */
type EventSender = 'worker' | 'delegator' | 'person' | 'judge' | 'handler'

export const EVENT_SENDERS: Record<Extract<TaskEvent, By>['type'], EventSender> = {
  acknowledged: 'worker',
  started: 'worker',
  worker_exited: 'worker',
  worker_unreachable: 'worker',
  child_delegated: 'worker',
  query_asked: 'worker',
  user_asked: 'worker',
  approval_asked: 'worker',
  extension_requested: 'worker',
  reported: 'worker',
  turn_ended: 'worker',
  answered: 'handler',
  approval_decided: 'handler',
  extension_granted: 'delegator',
  extension_refused: 'delegator',
  followed_up: 'delegator',
  settled: 'delegator',
  cancelled: 'delegator',
  taken_over: 'person',
  held: 'person',
  released: 'person',
  judged: 'judge',
  review_taken: 'judge',
  review_turn_ended: 'judge',
  review_lost: 'judge',
}

export function senderOf(event: TaskEvent): string | undefined {
  return 'by' in event ? event.by : undefined
}

/** A `report` that answers nothing is final; one with `inReplyTo` is stored as `partial`. */
export type SendKind = Exclude<TaskMessageKind, 'partial'>

/** Effects that the store carries out, in the transaction that stores the task. */
export type TaskStoreEffect =
  /** `wake` false: the message waits in the mailbox until something else starts a turn. */
  | { type: 'send'; kind: SendKind; to: string; text: string; wake: boolean; inReplyTo?: string }
  /** `awaits` false: a notice. Otherwise the verdict comes back with the id of this question. */
  | {
      type: 'ask_person'
      kind: 'input' | 'escalation'
      question: string
      text: string
      reason: string
      awaits: boolean
      form?: AnswerForm
      expiresAt: number | null
    }
  /** The task no longer needs an answer. */
  | { type: 'withdraw'; question: string }
  | { type: 'record_outcome'; agent: string; outcome: WorkOutcome }
  /** An event for a relative, reduced in the same transaction and in this order. */
  | { type: 'dispatch'; task: string; event: TaskEvent }
  /** An audit entry. */
  | { type: 'note'; text: string }

/** Effects outside of the store, carried out after the commit. `pendingEffects` derives the unfinished ones from the task. */
export type TaskOutsideEffect =
  /** Starts the agent if it isn't running, because it has a task or a claim to judge in its mailbox. */
  | { type: 'start_agent'; agent: string; task: string; isReview?: true }
  | { type: 'interrupt_agent'; agent: string; task: string; interrupt: number }
  | { type: 'run_checks'; task: string; claim: number; checks: readonly string[]; result: string }
  /** Asks a model. An agent that judges gets a message instead. */
  | { type: 'run_judge'; task: string; claim: number; judge: string; text: string; result: string }

/** The key is unique to the effect. */
export type WithKey<E> = E & { key: string }
export type TaskEffect = TaskStoreEffect | WithKey<TaskOutsideEffect>

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
