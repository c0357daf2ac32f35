import { AppError } from '../base/errors.ts'
import { REFUSALS, type Refusal } from './core/view.ts'

const HINTS: Record<Refusal['code'], string> = {
  TASK_ENDED: 'Nothing more is to be done about it.',
  DUPLICATE: 'It was taken once; go on.',
  NOT_YOURS:
    'A task is reported by the agent that it was given to, decided on by who gave it, and a question answered by who was asked.',
  NOT_A_PERSON: 'Ask one with request_user_input.',
  NOT_RELATED: 'Questions go to whoever gave you the task, and to those you gave one to.',
  STALE: 'It came too late, and nothing was changed.',
  UNDER_VALIDATION: 'You will be told.',
  UNKNOWN_QUESTION: 'in_response_to is the id of the message that asked, such as msg_12.',
  QUESTION_CLOSED: 'Somebody answered it, or the task went on without. Go on.',
  BLANK_ANSWER: 'Answer it in words.',
  OUT_OF_RANGE: 'Give a value in that range.',
  TOO_DEEP: 'Whoever gave you the task can also give it to others.',
  CYCLE: 'An agent that waits for you cannot work for you.',
  CIRCUIT_OPEN: 'Do it yourself, or report needs_help, if that is too long.',
  TOO_MANY: 'Whoever gave you the task decides how it goes on.',
}

/** What the core of tasks refuses is said in its words, under a code that every transport knows. */
export function refusalError({ code, message }: Refusal): AppError {
  return new AppError(REFUSALS[code], message, { hint: HINTS[code], data: { refusal: code } })
}
