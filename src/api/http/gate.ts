import type { IncomingMessage } from 'node:http'
import type { Tokens } from '../../agents/tokens.ts'
import type { Principal } from '../../base/agent.ts'
import { AppError } from '../../base/errors.ts'
import { ROUTES } from '../contract.ts'
import { joinToken } from './browser-session.ts'
import type { Hosts } from './hosts.ts'
import type { Pages } from './pages.ts'

/** Who calls, by the token that came with the call. */
export interface Caller {
  readonly principal: Principal
  readonly token: string
  /** Signed in to the control room, rather than a program with a token. */
  readonly isBrowser?: true
}

/** For the routes that need no token. */
export const NOBODY: Caller = { principal: { kind: 'agent', agent: '' }, token: '' }

/**
 * Passed by every request before anything else looks at it: the name it came under, its origin, its target, then
 * its token. Without a token nobody learns even which routes there are.
 */
export type Gate = (incoming: IncomingMessage) => Caller | AppError

const OPEN_PATHS: ReadonlySet<string> = new Set(
  Object.values(ROUTES)
    .filter((route) => route.who === 'anyone')
    .map((route) => route.path),
)
const BEARER = /^Bearer +(\S+) *$/i

interface GateOptions {
  hosts: () => Hosts
  tokens: Tokens
  pages: Pages
  /** What the cookie of a browser's session is called. */
  cookie: () => string
}

export function createGate({ hosts, tokens, pages, cookie }: GateOptions): Gate {
  return (incoming) => {
    const { rawHeaders } = incoming
    let host: string | undefined
    let origin: string | undefined
    let authorization: string | undefined
    // Read here rather than from `headers`, which hides that a header came twice.
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
    // A whole URL as the target would name a second host, which nobody checked; browsers take \ for / there.
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

/** HEAD would have to take messages without giving them, and OPTIONS asks for what is never granted. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'DELETE'])

function identify(tokens: Tokens, authorization: string | undefined): Caller | AppError {
  if (authorization === undefined) return unauthenticated('The request carries no token')
  const token = BEARER.exec(authorization)?.[1]
  const principal = token === undefined ? undefined : tokens.authenticate(token)
  if (principal === undefined) return unauthenticated('The token is not valid, or no longer')
  return { principal, token: token! }
}

/** Half a token proves nothing, and is refused like none. */
function identifyBrowser(tokens: Tokens, token: string): Caller | AppError {
  const principal = tokens.endsAt(token) === undefined ? undefined : tokens.authenticate(token)
  if (principal === undefined) {
    return new AppError('UNAUTHENTICATED', 'The session of this browser has ended', {
      hint: 'Sign in again: orc open.',
    })
  }
  return { principal, token, isBrowser: true }
}

function is(name: string, lower: string): boolean {
  return name.length === lower.length && name.toLowerCase() === lower
}

export function unauthenticated(message: string): AppError {
  return new AppError('UNAUTHENTICATED', message, {
    hint: 'Send the header `Authorization: Bearer TOKEN`. `orc token AGENT` makes a token for an agent.',
  })
}

function methodNotAllowed(method: string | undefined): AppError {
  return new AppError('METHOD_NOT_ALLOWED', `No route takes ${(method ?? '').slice(0, 20)}`, {
    hint: 'The API uses GET, POST and DELETE; GET /openapi.json describes it.',
  })
}

function twice(header: string): AppError {
  return malformed(`The ${header} header came twice`)
}

function malformed(message: string): AppError {
  return new AppError('INVALID_REQUEST', message, { hint: 'Send an ordinary HTTP/1.1 request.' })
}
