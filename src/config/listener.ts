import { resolve } from 'node:path'
import type { Report } from '../yaml/problem.ts'
import { isLoopback } from './loopback.ts'
import { type ConfigInput, DEFAULTS } from './schema.ts'

export interface ServiceConfig {
  readonly host: string
  readonly port: number
  /** Absolute path, used instead of host and port. */
  readonly unixSocket?: string
  readonly allowedHosts: readonly string[]
}

/** The kernel's limit for the path of a Unix socket. */
const SOCKET_PATH_BYTES = 107

type ServiceInput = NonNullable<ConfigInput['service']>

export function resolveService(
  written: ServiceInput,
  folder: string,
  report: Report,
  warn: Report,
): ServiceConfig {
  const { host = DEFAULTS.host, port = DEFAULTS.port, unix_socket, allowed_hosts } = written
  if (!isLoopback(host)) {
    const hint = 'Traffic is not encrypted: keep it in a trusted network or behind a proxy with TLS.'
    warn(['service', 'host'], 'makes the service reachable from other machines', hint)
  }
  const common = { host, port, allowedHosts: allowed_hosts ?? [] }
  if (unix_socket === undefined) return common
  const path = ['service', 'unix_socket']
  const unixSocket = resolve(folder, unix_socket)
  if (written.host !== undefined || written.port !== undefined) {
    report(path, 'cannot be combined with "host" or "port"', 'Keep either the socket or the port.', 'key')
  }
  if (Buffer.byteLength(unixSocket) > SOCKET_PATH_BYTES) {
    report(
      path,
      `is longer than ${SOCKET_PATH_BYTES} bytes, the limit for a socket path`,
      'Choose a shorter absolute path.',
    )
  }
  return { ...common, unixSocket }
}
