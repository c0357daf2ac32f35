/**
 * Every error a user can meet, in one table. A transport maps codes to its own statuses in a table typed
 * `Record<ErrorCode, …>`, so that a new code does not compile until each transport has an answer for it.
 */
export const ERROR_CODES = {
  UNAUTHENTICATED: 'No valid token came with the request',
  FORBIDDEN: 'The caller is not permitted to do this',
  FORBIDDEN_HOST: 'The Host or Origin header is not one this service answers to',
  SENDER_MISMATCH: 'The command names a sender other than the one who said it',
  UNKNOWN_COMMAND: 'No such command type',
  INVALID_COMMAND: 'The command does not fit its schema',
  INVALID_REQUEST: 'The request itself is malformed',
  UNKNOWN_AGENT: 'No agent of that name is registered',
  UNKNOWN_RECIPIENT: 'No agent of the recipient name is registered',
  NOT_FOUND: 'There is no such thing',
  METHOD_NOT_ALLOWED: 'The route exists, but not for this method',
  TOO_LARGE: 'The input is over the size limit',
  RATE_LIMITED: 'Too many commands in too short a time',
  IDEMPOTENCY_CONFLICT: 'The idempotency key was used before, for another command',
  CONFLICT: 'The thing is in a state that does not allow this',
  HALTED: 'A person stopped everything, and it has not gone on yet',
  RUNTIME_FAILED: 'The runtime could not carry out the action',
  RUNTIME_MISSING: 'What the runtime needs is not installed',
  PROGRAM_MISSING: 'The agent program is not installed',
  PROGRAM_FAILED: 'The agent program did not do what was asked of it',
  NOT_EXTRACTED: 'The text holds something that looks like a command but cannot be carried out',
  CONFIG_INVALID: 'The configuration has mistakes',
  PLAN_INVALID: 'The plan has mistakes',
  STORE_LOCKED: 'Another daemon holds this store',
  STORE_NEWER: 'The store was written by a newer version',
  STORE_FULL: 'The disk is full',
  STORE_CORRUPT: 'The store is damaged',
  STORE_UNAVAILABLE: 'The store cannot be reached',
  FENCED: 'This daemon lost its lease to another one',
  SERVICE_UNREACHABLE: 'The service does not answer',
  SERVICE_STOPPING: 'The service is shutting down',
  USAGE: 'The command line was not understood',
  INTERNAL: 'A fault in Orchub itself',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

export interface ErrorDetails {
  /** What the reader can do next; shown to people and agents alike. */
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

/** Unknown throws become INTERNAL; their text stays out of answers to agents and goes to the log only. */
export function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error
  return new AppError('INTERNAL', 'Something went wrong inside the service', {
    hint: 'See the log of the service; `orc doctor` checks its parts.',
    cause: error,
  })
}

/** In words, whatever was thrown. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
