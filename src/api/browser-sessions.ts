import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Principal } from '../base/agent.ts'
import type { Clock } from '../base/clock.ts'

/**
 * A browser stores its token in two halves, each too long to guess: a cookie, which the browser also sends to other
 * servers on other ports of this host, and a header, which only our own page can send.
 */
const SESSION_HEADER = 'x-orc-session'
/** `orct_` and 22 of the token's 43 characters (132 bits); the header carries the other 21 (126 bits). */
const COOKIE_LENGTH = 27

interface TokenHalves {
  readonly cookie: string
  readonly header: string
}

export function splitToken(token: string): TokenHalves {
  return { cookie: token.slice(0, COOKIE_LENGTH), header: token.slice(COOKIE_LENGTH) }
}

/** Joins the two halves of a browser's token, unvalidated; undefined unless both are present. */
export function joinToken({ headers }: IncomingMessage, name: string): string | undefined {
  const header = headers[SESSION_HEADER]
  if (typeof header !== 'string') return undefined
  const cookie = readCookie(headers.cookie, name)
  return cookie === undefined ? undefined : cookie + header
}

/** Services on other ports of this host share its cookies, so each uses its own cookie name. */
export function cookieName(port: number | undefined): string {
  return port === undefined ? 'orc_session' : `orc_session_${port}`
}

export function setCookie(name: string, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`
}

/** Rejects duplicate cookies of the same name: one of them was planted. */
function readCookie(header: string | undefined, name: string): string | undefined {
  const found = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
  return found.length === 1 ? found[0]!.slice(name.length + 1) : undefined
}

/** Single-use codes that sign a browser in. They live in memory only and do not survive a restart. */
export interface Logins {
  create(holder: Principal, token: string): { code: string; endsAt: number }
  /** Uses up the code and returns the person who may sign in with it. */
  redeem(code: string): { holder: Principal; token: string } | undefined
}

const LOGIN_MS = 5 * 60_000
const CODE_BYTES = 32
/** Beyond this many open codes the oldest are dropped. */
const MOST_LOGINS = 100

export function createLogins(clock: Pick<Clock, 'now'>): Logins {
  const open = new Map<string, { holder: Principal; token: string; endsAt: number }>()
  return {
    create(holder, token) {
      const now = clock.now()
      for (const [key, { endsAt }] of open) if (endsAt <= now || open.size >= MOST_LOGINS) open.delete(key)
      const code = randomBytes(CODE_BYTES).toString('base64url')
      const endsAt = now + LOGIN_MS
      open.set(hash('sha256', code), { holder, token, endsAt })
      return { code, endsAt }
    },
    redeem(code) {
      const key = hash('sha256', code)
      const found = open.get(key)
      open.delete(key)
      return found === undefined || found.endsAt <= clock.now() ? undefined : found
    },
  }
}
