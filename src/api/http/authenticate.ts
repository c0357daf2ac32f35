import { hash, randomBytes } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Tokens } from '../../agents/tokens.ts'
import type { Principal } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import { AppError } from '../../base/errors.ts'
import { ROUTES } from '../contract.ts'
import { unauthenticated } from './exchange.ts'
import type { Pages } from './pages.ts'

/** The identity behind a request, from its token. */
export interface ApiCaller {
  readonly principal: Principal
  readonly token: string
  /** A browser session in the control room, rather than a program with a token. */
  readonly isBrowser?: true
}

/** The caller of routes that need no token. */
export const NOBODY: ApiCaller = { principal: { kind: 'agent', agent: '' }, token: '' }

/**
 * The first check of every request: Host, Origin, request target, method, then token. Without a valid token a
 * caller cannot even find out which routes exist.
 */
export type Authenticator = (incoming: IncomingMessage) => ApiCaller | AppError

const OPEN_PATHS: ReadonlySet<string> = new Set(
  Object.values(ROUTES)
    .filter((route) => route.who === 'anyone')
    .map((route) => route.path),
)
const BEARER = /^Bearer +(\S+) *$/i

interface AuthenticatorOptions {
  hosts: () => Hosts
  tokens: Tokens
  pages: Pages
  /** The name of the browser session's cookie. */
  cookie: () => string
}

export function createAuthenticator({ hosts, tokens, pages, cookie }: AuthenticatorOptions): Authenticator {
  return (incoming) => {
    const { rawHeaders } = incoming
    let host: string | undefined
    let origin: string | undefined
    let authorization: string | undefined
    // `incoming.headers` hides duplicate headers, so read the raw ones.
    for (let at = 0; at < rawHeaders.length; at += 2) {
      const name = rawHeaders[at]!
      const value = rawHeaders[at + 1]!
      if (is(name, 'host')) {
        if (host !== undefined) return twice('Host')
        host = value
      } else if (is(name, 'authorization')) {
        if (authorization !== undefined) return twice('Authorization')
        authorization = value
      } else if (is(name, 'origin')) {
        if (origin !== undefined) return twice('Origin')
        origin = value
      }
    }
    const foreign = hosts().check(host, origin)
    if (foreign !== undefined) return foreign
    const url = incoming.url ?? ''
    // An absolute URL as the target would name a second, unchecked host; browsers treat \ as / there.
    if (!url.startsWith('/') || url.includes('\\')) return malformed('The request target is not a path')
    if (!METHODS.has(incoming.method ?? '')) return methodNotAllowed(incoming.method)
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    if (OPEN_PATHS.has(path) || pages.has(path)) return NOBODY
    if (authorization === undefined) {
      const token = joinToken(incoming, cookie())
      if (token !== undefined) return identifyBrowser(tokens, token)
    }
    return identify(tokens, authorization)
  }
}

/** No HEAD, which would mark messages as handed out without returning them; no OPTIONS, because CORS is never granted. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE'])

function identify(tokens: Tokens, authorization: string | undefined): ApiCaller | AppError {
  if (authorization === undefined) return unauthenticated('The request has no token')
  const token = BEARER.exec(authorization)?.[1]
  const principal = token === undefined ? undefined : tokens.authenticate(token)
  if (principal === undefined) return unauthenticated('The token is invalid or was revoked')
  return { principal, token: token! }
}

/** Accepts session tokens only; half a token counts as none. */
function identifyBrowser(tokens: Tokens, token: string): ApiCaller | AppError {
  const principal = tokens.endsAt(token) === undefined ? undefined : tokens.authenticate(token)
  if (principal === undefined) {
    return new AppError('UNAUTHENTICATED', 'This browser session has ended', {
      hint: 'Sign in again: orc open.',
    })
  }
  return { principal, token, isBrowser: true }
}

function is(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower
}

function methodNotAllowed(method: string | undefined): AppError {
  return new AppError('METHOD_NOT_ALLOWED', `No route accepts ${(method ?? '').slice(0, 20)}`, {
    hint: 'The API uses GET, POST and DELETE; GET /openapi.json describes it.',
  })
}

function twice(header: string): AppError {
  return malformed(`The ${header} header appears twice`)
}

function malformed(message: string): AppError {
  return new AppError('INVALID_REQUEST', message, { hint: 'Send a plain HTTP/1.1 request.' })
}

/**
 * The host names the service answers to. A web page can make a browser send requests to 127.0.0.1 under the page's
 * own name (DNS rebinding) or from the page's origin. The Host and Origin headers reveal both, and a page cannot
 * forge them.
 */
export interface Hosts {
  /** Returns the error if a request with these headers must be refused. */
  check(host: string | undefined, origin: string | undefined): AppError | undefined
}

interface HostsOptions {
  /** Absent on a Unix socket, which has no port and which no browser can reach. */
  port?: number
  host?: string
  /** `name` for any port, `name:port` for one. */
  allowed: readonly string[]
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
/** These addresses mean "all interfaces" and are not host names. */
const WILDCARDS = new Set(['0.0.0.0', '::', '[::]', ''])
const HTTP_PORT = 80

export function createHosts({ port, host, allowed }: HostsOptions): Hosts {
  const exact = new Set<string>()
  const anyPort = new Set<string>()
  const own = host === undefined || WILDCARDS.has(host) ? LOOPBACK : [...LOOPBACK, bracketed(host)]
  for (const name of own) {
    if (port === undefined) anyPort.add(name.toLowerCase())
    else exact.add(`${name.toLowerCase()}:${port}`)
    if (port === HTTP_PORT) exact.add(name.toLowerCase())
  }
  for (const name of allowed) {
    const entry = name.toLowerCase()
    if (/:\d+$/.test(entry)) exact.add(entry)
    else anyPort.add(entry)
  }

  function answersTo(authority: string): boolean {
    const name = authority.toLowerCase()
    return exact.has(name) || (anyPort.size > 0 && anyPort.has(name.replace(/:\d{1,5}$/, '')))
  }

  return {
    check(authority, origin) {
      if (authority === undefined) return refusal('The request has no Host header')
      if (!answersTo(authority)) {
        return refusal(`This service does not answer to the host "${authority.slice(0, 100)}"`)
      }
      if (origin === undefined) return undefined
      const from = /^https?:\/\/([^/]+)$/i.exec(origin)
      if (from !== null && answersTo(from[1]!)) return undefined
      return refusal(`Pages of the origin "${origin.slice(0, 100)}" may not use this service`)
    },
  }
}

/** IPv6 addresses need brackets in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
}

function refusal(message: string): AppError {
  return new AppError('FORBIDDEN_HOST', message, {
    hint: 'Use the address that the service printed when it started, or add the host name to service.allowed_hosts in orc.yaml.',
  })
}

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
function joinToken({ headers }: IncomingMessage, name: string): string | undefined {
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
