import type { IncomingMessage } from 'node:http'
import type { Principal } from '../base/agent.ts'
import { AppError } from '../base/errors.ts'
import { failure, type Result } from '../base/result.ts'
import type { Tokens } from '../commands/tokens.ts'
import { joinToken } from './browser-sessions.ts'
import { ROUTES } from './contract.ts'
import type { Hosts } from './host-origin-check.ts'
import { unauthenticated } from './http-response.ts'
import type { StaticFiles } from './static-files.ts'

/** The identity behind a request, from its token. */
export interface ApiCaller {
  readonly principal: Principal
  readonly token: string
  /** A browser session in the control room, rather than a program with a token. */
  readonly isBrowser?: true
}

/** The caller of routes that need no token. */
export const ANONYMOUS: ApiCaller = { principal: { kind: 'agent', agent: '' }, token: '' }

/**
 * The first check of every request: Host, Origin, request target, method, then token. Without a valid token a
 * caller cannot even find out which routes exist.
 */
export type Authenticator = (incoming: IncomingMessage) => Result<ApiCaller>

const OPEN_PATHS: ReadonlySet<string> = new Set(
  Object.values(ROUTES)
    .filter((route) => route.who === 'anyone')
    .map((route) => route.path),
)
const BEARER = /^Bearer +(\S+) *$/i

interface AuthenticatorOptions {
  hosts: () => Hosts
  tokens: Tokens
  pages: StaticFiles
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
        if (host !== undefined) return failure(twice('Host'))
        host = value
      } else if (is(name, 'authorization')) {
        if (authorization !== undefined) return failure(twice('Authorization'))
        authorization = value
      } else if (is(name, 'origin')) {
        if (origin !== undefined) return failure(twice('Origin'))
        origin = value
      }
    }
    const foreign = hosts().check(host, origin)
    if (foreign !== undefined) return failure(foreign)
    const url = incoming.url ?? ''
    // An absolute URL as the target would name a second, unchecked host; browsers treat \ as / there.
    if (!url.startsWith('/') || url.includes('\\'))
      return failure(malformed('The request target is not a path'))
    if (!METHODS.has(incoming.method ?? '')) return failure(methodNotAllowed(incoming.method))
    const query = url.indexOf('?')
    const path = query < 0 ? url : url.slice(0, query)
    if (OPEN_PATHS.has(path) || pages.has(path)) return { ok: true, value: ANONYMOUS }
    if (authorization === undefined) {
      const token = joinToken(incoming, cookie())
      if (token !== undefined) return identifyBrowser(tokens, token)
    }
    return identify(tokens, authorization)
  }
}

/** No HEAD, which would mark messages as handed out without returning them; no OPTIONS, because CORS is never granted. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE'])

function identify(tokens: Tokens, authorization: string | undefined): Result<ApiCaller> {
  if (authorization === undefined) return failure(unauthenticated('The request has no token'))
  const token = BEARER.exec(authorization)?.[1]
  const principal = token === undefined ? undefined : tokens.authenticate(token)
  if (principal === undefined) return failure(unauthenticated('The token is invalid or was revoked'))
  return { ok: true, value: { principal, token: token! } }
}

/** Accepts session tokens only; half a token counts as none. */
function identifyBrowser(tokens: Tokens, token: string): Result<ApiCaller> {
  const principal = tokens.endsAt(token) === undefined ? undefined : tokens.authenticate(token)
  if (principal === undefined) {
    return failure(
      new AppError('UNAUTHENTICATED', 'This browser session has ended', { hint: 'Sign in again: orc open.' }),
    )
  }
  return { ok: true, value: { principal, token, isBrowser: true } }
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
