import type { IncomingMessage } from 'node:http'

/**
 * A browser holds its token in two halves, each long enough that guessing it is hopeless: a cookie, which goes to every
 * port of this host and so to servers that are not ours, and a header, which only our own page can send.
 */
const SESSION_HEADER = 'x-orc-session'
/** Past `orct_`: 22 of the 43 characters are 132 bits, the other 21 are 126. */
const COOKIE_LENGTH = 27

interface Halves {
  readonly cookie: string
  readonly header: string
}

export function splitToken(token: string): Halves {
  return { cookie: token.slice(0, COOKIE_LENGTH), header: token.slice(COOKIE_LENGTH) }
}

/** The token that a browser sends, if it sends both halves; whether it is valid is for others to say. */
export function joinToken({ headers }: IncomingMessage, name: string): string | undefined {
  const header = headers[SESSION_HEADER]
  if (typeof header !== 'string') return undefined
  const cookie = readCookie(headers.cookie, name)
  return cookie === undefined ? undefined : cookie + header
}

/** Services on other ports of this host share its cookies: each has a name of its own. */
export function cookieName(port: number | undefined): string {
  return port === undefined ? 'orc_session' : `orc_session_${port}`
}

export function setCookie(name: string, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Strict`
}

/** Two of one name are none: somebody put one there that is not ours. */
function readCookie(header: string | undefined, name: string): string | undefined {
  const found = (header ?? '')
    .split(';')
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
  return found.length === 1 ? found[0]!.slice(name.length + 1) : undefined
}
