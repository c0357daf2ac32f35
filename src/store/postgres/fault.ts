import { AppError, type ErrorCode } from '../../base/errors.ts'

interface KnownFault {
  code: ErrorCode
  /** Follows the server's name. */
  what: string
  hint: string
}

const NOTHING_STORED = 'Nothing was stored; send the command again.'

const SCHEMA_CHANGED: KnownFault = {
  code: 'STORE_CORRUPT',
  what: 'does not have the expected tables',
  hint: 'They were changed or removed. Restore them from a backup, or give the store its own database.',
}

/** SQLSTATE codes that a user can do something about. */
const STATES: Record<string, KnownFault> = {
  '53100': {
    code: 'STORE_FULL',
    what: 'has no disk space left',
    hint: `Free some space there. ${NOTHING_STORED}`,
  },
  '53200': {
    code: 'STORE_UNAVAILABLE',
    what: 'is out of memory',
    hint: `See its log. ${NOTHING_STORED}`,
  },
  '53300': {
    code: 'STORE_UNAVAILABLE',
    what: 'accepts no more connections',
    hint: 'Raise max_connections, or close other connections. Orchub needs up to 8.',
  },
  '28P01': {
    code: 'STORE_UNAVAILABLE',
    what: 'rejects the user or the password',
    hint: 'Check both in store.url, and percent-encode special characters.',
  },
  '28000': {
    code: 'STORE_UNAVAILABLE',
    what: 'does not accept this user from this host',
    hint: 'Check the user, and the pg_hba.conf of the server.',
  },
  '42501': {
    code: 'STORE_UNAVAILABLE',
    what: 'does not give this user the permissions that the store needs',
    hint: 'Make the user the owner of the database: ALTER DATABASE … OWNER TO …',
  },
  '25006': {
    code: 'STORE_UNAVAILABLE',
    what: 'is read-only, possibly a standby',
    hint: 'Give the address of the primary server.',
  },
  '42P01': SCHEMA_CHANGED,
  '42703': SCHEMA_CHANGED,
  XX001: {
    code: 'STORE_CORRUPT',
    what: 'has damaged data',
    hint: 'Stop the service, keep a copy of the data, and restore from a backup.',
  },
  XX002: {
    code: 'STORE_CORRUPT',
    what: 'has a damaged index',
    hint: 'REINDEX DATABASE may be enough; otherwise restore from a backup.',
  },
}

/** SQLSTATE classes of a server that is stopping, stopped or starting. */
const AWAY = /^(08|57P|58)/
/** Error codes of Node and the driver for a failed connection. */
const BROKEN = /^(E[A-Z]+|EAI_[A-Z]+|CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED|DESTROYED))$/

/** Colliding transactions: deadlock, serialization failure, lock not available, duplicate key. */
const COLLISIONS = new Set(['40P01', '40001', '55P03', '23505'])

export function isBroken(error: unknown): boolean {
  return BROKEN.test(codeOf(error))
}

export function isCollision(error: unknown): boolean {
  return COLLISIONS.has(codeOf(error))
}

/** Turns a driver error into an AppError with a hint. Neither `server` nor PostgreSQL's messages contain the password. */
export function toStoreError(server: string, error: unknown): unknown {
  if (error instanceof AppError) return error
  const code = codeOf(error)
  if (code === '3D000') return missingDatabase(server, error)
  const named = STATES[code]
  if (named !== undefined) {
    return new AppError(named.code, `${server} ${named.what}${quoted(error)}`, {
      hint: named.hint,
      cause: error,
    })
  }
  return AWAY.test(code) || BROKEN.test(code) ? unreachable(server, error) : error
}

/** While connecting, any other error (certificates, DNS …) means that the server can't be reached. */
export function toConnectError(server: string, error: unknown): unknown {
  const named = toStoreError(server, error)
  return named instanceof AppError ? named : unreachable(server, error)
}

export function unknownOutcome(server: string, error: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `${server} disconnected during a commit${quoted(error)}`, {
    hint: 'It may or may not be stored. Send it again with the same idempotency key, and it counts once.',
    cause: error,
  })
}

function unreachable(server: string, error: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `${server} cannot be reached${quoted(error)}`, {
    hint: `Check that the server runs and that store.url is right. ${NOTHING_STORED}`,
    cause: error,
  })
}

function missingDatabase(server: string, error: unknown): AppError {
  const name = server.slice(server.lastIndexOf('/') + 1)
  return new AppError('STORE_UNAVAILABLE', `${server} does not exist`, {
    hint: `Create the database: createdb ${name}, or CREATE DATABASE "${name}" ENCODING 'UTF8' TEMPLATE template0.`,
    cause: error,
  })
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : ''
}

function quoted(error: unknown): string {
  const text = error instanceof Error && error.message !== '' ? error.message : codeOf(error)
  return text === '' ? '' : ` (${text})`
}
