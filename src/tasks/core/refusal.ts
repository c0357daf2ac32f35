import { AppError, type ErrorCode } from '../../base/errors.ts'

interface RefusalKind {
  error: ErrorCode
  hint: string
}

/** Reasons to refuse an event, with the error code that every transport maps and a hint for the sender. */
export const REFUSALS = {
  TASK_ENDED: { error: 'CONFLICT', hint: 'The task needs nothing more from you.' },
  NOT_YOURS: {
    error: 'FORBIDDEN',
    hint: 'Only the assigned agent reports on a task, only its delegator decides about it, and only the agent that was asked answers a question.',
  },
  NOT_A_PERSON: { error: 'FORBIDDEN', hint: 'Ask a person with request_user_input.' },
  NOT_RELATED: {
    error: 'FORBIDDEN',
    hint: 'Ask the agent that gave you the task, or an agent that you delegated to.',
  },
  DUPLICATE: { error: 'CONFLICT', hint: 'The first one was accepted; continue.' },
  STALE: { error: 'CONFLICT', hint: 'The command came too late and changed nothing.' },
  UNDER_VALIDATION: { error: 'CONFLICT', hint: 'The result comes as a message.' },
  UNKNOWN_QUESTION: {
    error: 'NOT_FOUND',
    hint: 'in_response_to is the id of the message that asked, such as msg_12.',
  },
  QUESTION_CLOSED: {
    error: 'CONFLICT',
    hint: 'Someone else answered, or the task continued without an answer.',
  },
  BLANK_ANSWER: { error: 'INVALID_COMMAND', hint: 'Write an answer.' },
  OUT_OF_RANGE: { error: 'INVALID_COMMAND', hint: 'Give a value in that range.' },
  TOO_DEEP: { error: 'FORBIDDEN', hint: 'The agent that gave you the task can delegate it to others.' },
  CYCLE: { error: 'FORBIDDEN', hint: 'An agent that waits for you cannot work for you.' },
  CIRCUIT_OPEN: {
    error: 'CONFLICT',
    hint: 'If that is too long to wait, do the work yourself or report needs_help.',
  },
  TOO_MANY: { error: 'RATE_LIMITED', hint: 'The agent that gave you the task decides how to continue.' },
} as const satisfies Record<string, RefusalKind>

export interface TaskRefusal {
  code: keyof typeof REFUSALS
  /** For the sender. */
  message: string
}

export interface RefusedEvent {
  ok: false
  refusal: TaskRefusal
}

export function refuse(code: TaskRefusal['code'], message: string): RefusedEvent {
  return { ok: false, refusal: { code, message } }
}

export function refusalError({ code, message }: TaskRefusal): AppError {
  const { error, hint } = REFUSALS[code]
  return new AppError(error, message, { hint, data: { refusal: code } })
}
