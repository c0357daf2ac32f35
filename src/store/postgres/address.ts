import postgres from 'postgres'
import { AppError } from '../../base/errors.ts'

export interface Address {
  url: string
  /** The server for people: without the password. */
  server: string
  /** Tried in this order. */
  endpoints: readonly Endpoint[]
}

export type Endpoint = { path: string } | { host: string; port: number }

/** The driver's own reading of an address, which no type declares. */
interface ReadOptions {
  host: string[]
  port: number[]
  path: string | false | undefined
  user: string
  database: string
}

export function readAddress(url: string): Address {
  const options = parse(url)
  // An unencoded / or # ends the host early: part of the password would be taken for the database or the port.
  if (options === undefined || url.includes('#') || options.database.includes('@')) {
    // The address itself stays out of it, and so does the parser's error: both hold the password.
    throw new AppError('CONFIG_INVALID', 'The address of the PostgreSQL store is not a valid one', {
      hint: 'It looks like postgres://user:password@host:5432/database; special characters in the password are percent-encoded.',
    })
  }
  const { host, port, path, user, database } = options
  const endpoints: Endpoint[] =
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
