import { AppError } from '../../base/errors.ts'
import type { Client } from '../../client/client.ts'
import { openConnection } from './connection.ts'
import type { TeamLocation } from './team-location.ts'

/** Opens the typed client of the running service, with the caller's token. */
export async function openClient(location: TeamLocation): Promise<Client> {
  const { address, token } = await openConnection(location)
  const { createClient } = await import('../../client/client.ts')
  const isAddress = address.startsWith('unix:') || /^https?:$/.test(URL.parse(address)?.protocol ?? '')
  if (!isAddress) throw (await import('../errors.ts')).noAddress(address)
  if (!address.startsWith('unix:')) return createClient({ url: address, token, retries: 0 })
  const { fetchOverSocket } = await import('./socket-fetch.ts')
  return createClient({
    url: address,
    token,
    retries: 0,
    fetch: fetchOverSocket(address.slice('unix:'.length)),
  })
}

/** Returns undefined when no service runs here, for commands that work without one. */
export async function openClientIfRunning(location: TeamLocation): Promise<Client | undefined> {
  try {
    return await openClient(location)
  } catch (error) {
    if (error instanceof AppError && error.code === 'SERVICE_UNREACHABLE') return undefined
    throw error
  }
}
