import { AppError } from '../base/errors.ts'

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
