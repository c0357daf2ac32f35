import type { ErrorCode } from '../base/errors.ts'
import type { Receipt } from '../protocol/receipt.ts'

/** The exit codes of every command; `orc help` and docs/cli.md show this table. */
export const EXIT_CODES = {
  ok: [0, 'done'],
  error: [1, 'an error in the service or a file, or a check that failed'],
  usage: [2, 'the command line or the command was not understood'],
  blocked: [3, 'a rule forbids it'],
  held: [4, 'held until a person approves or rejects it'],
  unreachable: [5, 'the service is not running or does not answer'],
  rateLimited: [6, 'too many commands; the message says when to try again'],
  notFound: [7, 'no such agent, recipient, message, request or file'],
  refused: [8, 'the token is missing, invalid, or not permitted to do this'],
  taskFailed: [9, 'the run failed, or the task failed, was cancelled or was skipped'],
  runPartial: [10, 'the run ended, but some of its agents were skipped'],
  runCancelled: [11, 'the run was cancelled'],
  interrupted: [130, 'stopped with Ctrl-C'],
} as const satisfies Record<string, readonly [code: number, meaning: string]>

type Exit = keyof typeof EXIT_CODES

export function exitCode(exit: Exit): number {
  return EXIT_CODES[exit][0]
}

const BY_ERROR: Record<ErrorCode, Exit> = {
  UNAUTHENTICATED: 'refused',
  FORBIDDEN: 'refused',
  FORBIDDEN_HOST: 'refused',
  SENDER_MISMATCH: 'refused',
  UNKNOWN_COMMAND: 'usage',
  INVALID_COMMAND: 'usage',
  INVALID_REQUEST: 'usage',
  UNKNOWN_AGENT: 'notFound',
  UNKNOWN_RECIPIENT: 'notFound',
  NOT_FOUND: 'notFound',
  METHOD_NOT_ALLOWED: 'error',
  TOO_LARGE: 'usage',
  RATE_LIMITED: 'rateLimited',
  IDEMPOTENCY_CONFLICT: 'error',
  CONFLICT: 'error',
  HALTED: 'error',
  RUNTIME_FAILED: 'error',
  RUNTIME_MISSING: 'error',
  PROGRAM_MISSING: 'error',
  PROGRAM_FAILED: 'error',
  NOT_EXTRACTED: 'error',
  CONFIG_INVALID: 'error',
  PLAN_INVALID: 'error',
  STORE_LOCKED: 'error',
  STORE_NEWER: 'error',
  STORE_FULL: 'error',
  STORE_CORRUPT: 'error',
  STORE_UNAVAILABLE: 'error',
  FENCED: 'error',
  SERVICE_UNREACHABLE: 'unreachable',
  SERVICE_STOPPING: 'unreachable',
  USAGE: 'usage',
  INTERNAL: 'error',
}

/** A newer service may know codes that this program does not. */
export function exitOfError(code: string): Exit {
  return BY_ERROR[code as ErrorCode] ?? 'error'
}

export function exitOfReceipt(receipt: Receipt): Exit {
  switch (receipt.status) {
    case 'delivered':
    case 'ok':
      return 'ok'
    case 'blocked':
    case 'held':
      return receipt.status
    case 'error':
      return exitOfError(receipt.code)
  }
}
