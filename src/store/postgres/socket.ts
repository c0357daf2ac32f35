import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Endpoint } from './address.ts'

interface SocketSource {
  /** For the driver. Gives a connected socket, once. */
  next(): Promise<Socket>
  /** Ends it at once, whatever the other side does. */
  destroy(): void
}

/**
 * The driver connects again whenever it can, and without end to a server that accepts connections only to close
 * them. With one socket and no other, a session has one life.
 */
export function oneSocket(endpoint: Endpoint, timeoutMs: number): SocketSource {
  let socket: Socket | undefined
  return {
    async next() {
      if (socket !== undefined) throw broken('CONNECTION_CLOSED', 'the server closed the connection')
      const plugged = connect('path' in endpoint ? endpoint : { ...endpoint, noDelay: true })
      socket = plugged
      const late = () => plugged.destroy(broken('CONNECT_TIMEOUT', 'no answer in time'))
      const deadline = setTimeout(late, timeoutMs)
      try {
        await once(plugged, 'connect')
      } finally {
        clearTimeout(deadline)
      }
      // The driver listens for errors from now on; this one is for when it lets go.
      plugged.on('error', () => {})
      return Object.assign(plugged, endpoint)
    },
    destroy() {
      socket?.destroy()
    },
  }
}

export function broken(code: string, message: string): Error {
  return Object.assign(new Error(message), { code })
}
