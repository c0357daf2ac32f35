import type { AnswerForm } from '../../people/human-request.ts'
import type { EndState, Findings, ReportStatus, TaskTimer } from '../task.ts'

/** `by` is who the transport says it is (C3): an agent, `operator`, or `orchestrator` for the service itself. */
interface By {
  by: string
}

/** Everything that can happen to one task. Ids of questions and reports are those of their messages or requests. */
export type Happening =
  // The way to the worker
  | { type: 'delegated' }
  | ({ type: 'acknowledged' } & By)
  | ({ type: 'started' } & By)
  | { type: 'ack_timed_out' }
  | { type: 'retry_due' }
  | { type: 'deadline_passed' }
  | ({ type: 'worker_exited'; why: string } & By)
  | ({ type: 'worker_unreachable'; why: string; recoverable: boolean } & By)
  /** An ordered interrupt was carried out. */
  | { type: 'interrupted'; interrupt: number }
  // What the worker says
  | ({ type: 'child_delegated'; child: string; requiresResponse: boolean } & By)
  | ({ type: 'query_asked'; question: string; to: string; text: string; requiresResponse: boolean } & By)
  /** `awaits` false: the worker goes on, and an answer comes as a message if it comes. */
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
  /** `problem`: what the schema of the result found wrong. */
  | ({ type: 'reported'; report: string; status: ReportStatus; result: string; problem?: string } & By)
  /** `said`: in this turn it reported, asked or delegated, whether or not that has come in yet; or more on it is still to be read. */
  | ({ type: 'turn_ended'; said: boolean; lastWords: string } & By)
  // What others answer. A question may also be named by the task's id: the last one to whoever answers.
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
  /** A person's request ran out. */
  | { type: 'question_expired'; question: string }
  | { type: 'wait_timed_out' }
  // What the delegator or a person decides
  | ({ type: 'followed_up'; text: string } & By)
  | ({ type: 'settled'; as: 'completed' | 'failed' | 'skipped'; reason: string } & By)
  | ({ type: 'cancelled'; reason: string } & By)
  | ({ type: 'taken_over' } & By)
  | ({ type: 'held'; reason: string } & By)
  | ({ type: 'released' } & By)
  // Validation
  /** Its turn has come: checks in one folder, and judges, go one after the other. */
  | { type: 'validation_began'; claim: number; step: 'checks' | 'judge' }
  | { type: 'checks_passed'; claim: number; evidence: string; findings?: Findings }
  | { type: 'checks_failed'; claim: number; evidence: string; findings?: Findings }
  | ({ type: 'judged'; claim: number; completed: boolean; reason: string } & By)
  /** The reviewer's runtime has the message. */
  | ({ type: 'review_taken' } & By)
  | ({ type: 'review_turn_ended'; lastWords: string } & By)
  /** The reviewer will not get to it: it exited, or cannot be started. */
  | ({ type: 'review_lost'; why: string } & By)
  | { type: 'validation_gave_up'; claim: number; why: string }
  | { type: 'validation_timed_out' }
  // What became of its relatives; told by the effect `tell`
  | { type: 'child_changed'; child: string }
  | { type: 'parent_ended'; as: EndState; reason: string }

export type HappeningType = Happening['type']
export type HappeningOf<T extends HappeningType> = Extract<Happening, { type: T }>

/** What a task is told when a timer of that kind is due. */
export const ON_DUE: Record<TaskTimer, Happening> = {
  ack: { type: 'ack_timed_out' },
  retry: { type: 'retry_due' },
  deadline: { type: 'deadline_passed' },
  validation: { type: 'validation_timed_out' },
  wait: { type: 'wait_timed_out' },
}

/**
 * Who may say so. `in_charge`: the delegator, a person or the service; `keeper`: the last two; `engine`: the service's
 * own finding, which names nobody; `judge`: whoever judges the task's claims (the service, for a model), or a person.
 */
export type Author =
  | 'worker'
  | 'delegator'
  | 'addressee'
  | 'person'
  | 'in_charge'
  | 'keeper'
  | 'judge'
  | 'engine'

export const AUTHOR: Record<HappeningType, Author> = {
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
  // An expiry is the service's to say, a verdict a person's: the handler tells them apart.
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

export function byOf(event: Happening): string | undefined {
  return 'by' in event ? event.by : undefined
}
