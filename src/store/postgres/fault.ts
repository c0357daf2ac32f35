import { AppError, type ErrorCode } from '../../base/errors.ts'

interface Named {
  code: ErrorCode
  /** Follows the server's name. */
  what: string
  hint: string
}

const NOTHING_STORED = 'Nothing was stored, and the same command can be sent again.'

const BENT: Named = {
  code: 'STORE_CORRUPT',
  what: 'has not the tables it should have',
  hint: 'Someone changed or removed them; restore them from a backup, or give the store a database of its own.',
}

/** SQLSTATE codes that a user can do something about. */
const STATES: Record<string, Named> = {
  '53100': { code: 'STORE_FULL', what: 'has no disk space left', hint: `Free some there. ${NOTHING_STORED}` },
  '53200': {
    code: 'STORE_UNAVAILABLE',
    what: 'is out of memory',
    hint: `See its log. ${NOTHING_STORED}`,
  },
  '53300': {
    code: 'STORE_UNAVAILABLE',
    what: 'takes no more connections',
    hint: 'Raise its max_connections, or close others. Orchub needs up to 8.',
  },
  '28P01': {
    code: 'STORE_UNAVAILABLE',
    what: 'refuses the user or the password',
    hint: 'Check both in the address of the store; special characters in them must be percent-encoded.',
  },
  '28000': {
    code: 'STORE_UNAVAILABLE',
    what: 'does not let this user in from here',
    hint: 'Check the user, and the pg_hba.conf of the server.',
  },
  '42501': {
    code: 'STORE_UNAVAILABLE',
    what: 'does not permit this user what the store needs',
    hint: 'Make the user the owner of the database: ALTER DATABASE … OWNER TO …',
  },
  '25006': {
    code: 'STORE_UNAVAILABLE',
    what: 'is read-only, perhaps a standby',
    hint: 'Give the address of the primary server.',
  },
  '42P01': BENT,
  '42703': BENT,
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

/** Classes of SQLSTATE for a server that goes, went, or is not there yet. */
const AWAY = /^(08|57P|58)/
/** What Node and the driver call a connection that failed. */
const BROKEN = /^(E[A-Z]+|EAI_[A-Z]+|CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED|DESTROYED))$/

/** Two transactions in each other's way: deadlock, serialization, lock not available, the same key at the same time. */
const COLLISIONS = new Set(['40P01', '40001', '55P03', '23505'])

export function isBroken(error: unknown): boolean {
  return BROKEN.test(codeOf(error))
}

export function isCollision(error: unknown): boolean {
  return COLLISIONS.has(codeOf(error))
}

/** Gives a fault a name, a place and a way out. `server` holds no password, nor does what PostgreSQL says. */
export function nameFault(server: string, error: unknown): unknown {
  if (error instanceof AppError) return error
  const code = codeOf(error)
  if (code === '3D000') return missingDatabase(server, error)
  const named = STATES[code]
  if (named !== undefined) {
    return new AppError(named.code, `${server} ${named.what}${said(error)}`, {
      hint: named.hint,
      cause: error,
    })
  }
  return AWAY.test(code) || BROKEN.test(code) ? unreachable(server, error) : error
}

/** While connecting, whatever goes wrong (certificates, name lookup …) means that it cannot be reached. */
export function nameConnectFault(server: string, error: unknown): unknown {
  const named = nameFault(server, error)
  return named instanceof AppError ? named : unreachable(server, error)
}

export function unknownOutcome(server: string, error: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `${server} went away during a commit${said(error)}`, {
    hint: 'It may or may not have been stored. Send it again with the same idempotency key, and it counts once.',
    cause: error,
  })
}

function unreachable(server: string, error: unknown): AppError {
  return new AppError('STORE_UNAVAILABLE', `${server} cannot be reached${said(error)}`, {
    hint: `Check that the server runs and that the address is right. ${NOTHING_STORED}`,
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

function said(error: unknown): string {
  const text = error instanceof Error && error.message !== '' ? error.message : codeOf(error)
  return text === '' ? '' : ` (${text})`
}
