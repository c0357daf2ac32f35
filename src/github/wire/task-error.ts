import type { Task } from '../../tasks/task.ts'
import type { TaskCompletion } from './codec.ts'

/**
 * The error object of the protocol (S3.12, S3.21). Everything but the message is public, so only the message may
 * contain the agent's own words.
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
/** An identifier, so that no sentence gets published as a code. */
const CODE = /^[A-Z][A-Z0-9_]{0,23}$/

interface FailedTask {
  readonly task: Pick<Task, 'state' | 'reason' | 'attempt'>
  /** The agent's report, if it is valid. */
  readonly completion: TaskCompletion | undefined
  /** Why the report is invalid. */
  readonly problem: string | undefined
  readonly retries: number
  readonly at: string
}

const SUGGESTED: Readonly<Record<string, string>> = {
  timeout: 'The agent took too long; ask again with a comment.',
  api_error: 'Try again later.',
  insufficient_context: 'The thread needs more information from a person.',
  ci_trigger_failed: 'Check the workflow.',
  protocol_violation: "Check the agent's last output: orc logs.",
}

export function taskError({ task, completion, problem, retries, at }: FailedTask): TaskError {
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
    // The task counts the attempts of the service.
    retry_count: Math.max(retries, task.attempt - 1),
    is_recoverable: false,
    suggested_action: suggestion(type),
  }
}

function codeOf(type: string): string {
  return `ERR_${type.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}`.slice(0, 60)
}

function suggestion(type: string): string {
  return SUGGESTED[type] ?? 'A maintainer should check it.'
}
