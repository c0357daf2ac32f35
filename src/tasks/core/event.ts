import type { AnswerForm } from '../../people/human-request.ts'
import type { EndState, Findings, ReportStatus, TaskTimer } from '../task.ts'

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
  /** `said`: the worker reported, asked or delegated in this turn, or has unread mail from its children. */
  | ({ type: 'turn_ended'; said: boolean; lastWords: string } & By)
  // Answers. The task's id also names a question: the last one put to the sender.
  | ({ type: 'query_answered'; question: string; answer: string } & By)
  | ({ type: 'user_answered'; question: string; answer: string } & By)
  | ({
      type: 'approval_decided'
      question: string
      verdict: 'approved' | 'modified' | 'rejected' | 'expired'
      comment?: string
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
 * Senders that an event is accepted from. `in_charge`: the delegator, a person or the service. `keeper`: a person or
 * the service. `engine`: the service itself, without a `by`. `judge`: the agent that judges the task's claims (the
 * service for a model), or a person. `addressee`: checked by the handler.
 */
type EventAuthor =
  | 'worker'
  | 'delegator'
  | 'addressee'
  | 'person'
  | 'in_charge'
  | 'keeper'
  | 'judge'
  | 'engine'

export const EVENT_AUTHORS: Record<TaskEventType, EventAuthor> = {
  delegated: 'engine',
  acknowledged: 'worker',
  started: 'worker',
  ack_timed_out: 'engine',
  retry_due: 'engine',
  deadline_passed: 'engine',
  worker_exited: 'worker',
  worker_unreachable: 'worker',
  interrupted: 'engine',
  child_delegated: 'worker',
  query_asked: 'worker',
  user_asked: 'worker',
  approval_asked: 'worker',
  extension_requested: 'worker',
  reported: 'worker',
  turn_ended: 'worker',
  query_answered: 'addressee',
  user_answered: 'person',
  // The service reports an expiry, a person gives a verdict: the handler checks which.
  approval_decided: 'engine',
  extension_granted: 'delegator',
  extension_refused: 'delegator',
  question_expired: 'engine',
  wait_timed_out: 'engine',
  followed_up: 'delegator',
  settled: 'delegator',
  cancelled: 'in_charge',
  taken_over: 'person',
  held: 'keeper',
  released: 'keeper',
  validation_began: 'engine',
  checks_passed: 'engine',
  checks_failed: 'engine',
  judged: 'judge',
  review_taken: 'judge',
  review_turn_ended: 'judge',
  review_lost: 'judge',
  validation_gave_up: 'engine',
  validation_timed_out: 'engine',
  child_changed: 'engine',
  parent_ended: 'engine',
}

export function senderOf(event: TaskEvent): string | undefined {
  return 'by' in event ? event.by : undefined
}
