import type { Task } from '../../tasks/task.ts'
import type { TaskCompletion } from '../wire/codec.ts'

/**
 * The error object of the protocol (S3.12, S3.21): what it was, whether it may pass, how often it was tried. All of it
 * but the message is published, past every policy, and so is the service's own; an agent's words are in the message.
 */
export interface TaskError {
  readonly error_type: string
  readonly error_message: string
  readonly error_code: string
  readonly timestamp: string
  readonly retry_count: number
  readonly is_recoverable: boolean
  readonly suggested_action: string
}

const AGENT_ERROR = 'agent_error'
/** A word of a list, and no sentence. */
const CODE = /^[A-Z][A-Z0-9_]{0,23}$/

interface Failed {
  readonly task: Pick<Task, 'state' | 'reason' | 'attempt'>
  /** What the agent itself reported, where that could be read. */
  readonly completion: TaskCompletion | undefined
  /** Why it could not be. */
  readonly problem: string | undefined
  readonly retries: number
  readonly at: string
}

const SUGGESTED: Readonly<Record<string, string>> = {
  timeout: 'The agent took too long; it can be asked again with a comment.',
  api_error: 'Try again later.',
  insufficient_context: 'The thread needs more to go by; a person can add it.',
  ci_trigger_failed: 'Look at the workflow.',
  protocol_violation: "Look at the agent's last words: orc logs.",
}

export function taskError({ task, completion, problem, retries, at }: Failed): TaskError {
  const said = completion?.error
  if (said !== undefined && said !== null) {
    const type = Object.hasOwn(SUGGESTED, said.errorType) ? said.errorType : AGENT_ERROR
    const words = [
      type === said.errorType ? '' : `${said.errorType}:`,
      said.errorMessage,
      said.suggestedAction,
    ]
    return {
      error_type: type,
      error_message: words.filter((part) => part !== undefined && part !== '').join(' '),
      error_code: said.errorCode !== undefined && CODE.test(said.errorCode) ? said.errorCode : codeOf(type),
      timestamp: said.at ?? at,
      retry_count: Math.max(said.retryCount, retries),
      is_recoverable: said.isRecoverable,
      suggested_action: suggestion(type),
    }
  }
  const reason = problem ?? task.reason ?? task.state
  const type =
    problem !== undefined
      ? 'protocol_violation'
      : /time|no (?:answer|word|sign)|late\b/i.test(reason)
        ? 'timeout'
        : AGENT_ERROR
  return {
    error_type: type,
    error_message: reason,
    error_code: codeOf(type),
    timestamp: at,
    // The attempts of the task itself are those that the service made.
    retry_count: Math.max(retries, task.attempt - 1),
    is_recoverable: false,
    suggested_action: suggestion(type),
  }
}

function codeOf(type: string): string {
  return `ERR_${type.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`.slice(0, 60)
}

function suggestion(type: string): string {
  return SUGGESTED[type] ?? 'A maintainer should look at it.'
}
