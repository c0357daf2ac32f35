import type { ErrorCode } from '../../base/errors.ts'
import type { Receipt } from '../../protocol/receipt.ts'

/** The HTTP status of every error. A new code does not compile until it has one. */
export const HTTP_STATUS: Record<ErrorCode, number> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  FORBIDDEN_HOST: 403,
  SENDER_MISMATCH: 403,
  UNKNOWN_COMMAND: 400,
  INVALID_COMMAND: 400,
  INVALID_REQUEST: 400,
  UNKNOWN_AGENT: 404,
  UNKNOWN_RECIPIENT: 404,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  TOO_LARGE: 413,
  RATE_LIMITED: 429,
  IDEMPOTENCY_CONFLICT: 409,
  CONFLICT: 409,
  HALTED: 423,
  RUNTIME_FAILED: 502,
  RUNTIME_MISSING: 502,
  PROGRAM_MISSING: 502,
  PROGRAM_FAILED: 502,
  NOT_EXTRACTED: 422,
  CONFIG_INVALID: 500,
  PLAN_INVALID: 422,
  STORE_LOCKED: 503,
  STORE_NEWER: 503,
  STORE_FULL: 507,
  STORE_CORRUPT: 500,
  STORE_UNAVAILABLE: 503,
  FENCED: 503,
  SERVICE_UNREACHABLE: 502,
  SERVICE_STOPPING: 503,
  USAGE: 400,
  INTERNAL: 500,
}

/** The status of a lone receipt. Held is 202: accepted, and nothing is done yet. */
export function statusOf(receipt: Receipt): number {
  switch (receipt.status) {
    case 'delivered':
    case 'ok':
      return 200
    case 'held':
      return 202
    case 'blocked':
      return 403
    case 'error':
      return HTTP_STATUS[receipt.code]
  }
}
