/**
 * Every error that a user can meet. Each transport maps the codes to its own statuses in a table typed
 * `Record<ErrorCode, …>`, so a new code doesn't compile until every transport handles it.
 */
export const ERROR_CODES = {
  UNAUTHENTICATED: 'The request has no valid token',
  FORBIDDEN: 'The caller may not do this',
  FORBIDDEN_HOST: 'The service does not accept this Host or Origin header',
  SENDER_MISMATCH: 'The `from` of the command is not the authenticated sender',
  UNKNOWN_COMMAND: 'The command type does not exist',
  INVALID_COMMAND: 'The command does not match its schema',
  INVALID_REQUEST: 'The request is malformed',
  UNKNOWN_AGENT: 'No agent with that name is registered',
  UNKNOWN_RECIPIENT: "No agent with the recipient's name is registered",
  NOT_FOUND: 'The requested item does not exist',
  METHOD_NOT_ALLOWED: 'The route does not support this HTTP method',
  TOO_LARGE: 'The input exceeds the size limit',
  RATE_LIMITED: 'The sender exceeded its rate limit',
  IDEMPOTENCY_CONFLICT: 'The idempotency key was already used for another command',
  CONFLICT: 'The current state does not allow this',
  HALTED: 'A person halted the team and has not resumed it',
  RUNTIME_FAILED: 'The runtime could not perform the action',
  RUNTIME_MISSING: 'A program that the runtime needs is not installed',
  PROGRAM_MISSING: 'The agent program is not installed',
  PROGRAM_FAILED: 'The agent program failed',
  NOT_EXTRACTED: 'The text contains something like a command that could not be read',
  CONFIG_INVALID: 'The configuration has mistakes',
  PLAN_INVALID: 'The plan has mistakes',
  STORE_LOCKED: 'Another daemon is using this store',
  STORE_NEWER: 'A newer version of Orchub wrote this store',
  STORE_FULL: 'The disk is full',
  STORE_CORRUPT: 'The store is damaged',
  STORE_UNAVAILABLE: 'The store cannot be reached',
  FENCED: 'Another daemon took over the lease of this one',
  SERVICE_UNREACHABLE: 'The service does not answer',
  SERVICE_STOPPING: 'The service is shutting down',
  USAGE: 'The command line is invalid',
  INTERNAL: 'A bug or an unexpected failure in Orchub',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

interface ErrorDetails {
  /** The next thing to do, for people and agents. */
  hint?: string
  data?: Record<string, unknown>
  cause?: unknown
}

export class AppError extends Error {
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly data: Record<string, unknown> | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'AppError'
    this.code = code
    this.hint = details.hint
    this.data = details.data
  }
}

/** Maps unknown errors to INTERNAL. Their text goes to the log only, never to agents. */
export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  return new AppError('INTERNAL', 'The service hit an unexpected error', {
    hint: 'See the log of the service, or run `orc service doctor`.',
    cause: error,
  })
}

/** The message of any thrown value. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
