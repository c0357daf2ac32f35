import postgres from 'postgres'
import { AppError } from '../../base/errors.ts'

export interface Address {
  url: string
  /** Description for people, without the password. */
  server: string
  /** In the order to try them. */
  endpoints: readonly ServerEndpoint[]
}

export type ServerEndpoint = { path: string } | { host: string; port: number }

/** The driver's parsed address, which its types don't declare. */
interface ReadOptions {
  host: string[]
  port: number[]
  path: string | false | undefined
  user: string
  database: string
}

export function readAddress(url: string): Address {
  const options = parse(url)
  // An unencoded / or # in the password ends the host early: the rest would become the database or the port.
  if (options === undefined || url.includes('#') || options.database.includes('@')) {
    // Leave out the address and the parser's error: both contain the password.
    throw new AppError('CONFIG_INVALID', 'The URL of the PostgreSQL store is not valid', {
      hint: 'Write postgres://user:password@host:5432/database, and percent-encode special characters in the password.',
    })
  }
  const { host, port, path, user, database } = options
  const endpoints: ServerEndpoint[] =
    typeof path === 'string' ? [{ path }] : host.map((name, index) => ({ host: name, port: port[index]! }))
  const places = endpoints.map((one) => ('path' in one ? one.path : `${one.host}:${one.port}`))
  return { url, server: `PostgreSQL at ${user}@${places.join(',')}/${database}`, endpoints }
}

function parse(url: string): ReadOptions | undefined {
  if (!/^postgres(ql)?:\/\//.test(url)) return undefined
  try {
    return postgres(url, { max: 0 }).options as unknown as ReadOptions
  } catch {
    return undefined
  }
}
