/** A WebSocket client over a unix socket, which Node's own WebSocket does not support. */
import { connect } from 'node:net'
import { type ClientOptions, WebSocket } from 'ws'

/** Conversations of weeks fit, while a runaway peer cannot exhaust the memory. */
const MAX_PAYLOAD = 256 * 1024 * 1024

/** Wait this long for the peer's half of the closing handshake; the app-server on the same machine answers at once. */
const CLOSE_TIMEOUT_MS = 500

export interface UnixWebSocket {
  /** Returns false when the connection is over and nothing was sent. */
  send(text: string): boolean
  close(): void
  /** Resolves with the reason why the connection ended; never rejects. */
  readonly closed: Promise<string>
}

/** Rejects when no WebSocket server listens at the path. */
export function openUnixWebSocket(path: string, onText: (text: string) => void): Promise<UnixWebSocket> {
  const { promise: closed, resolve: end } = Promise.withResolvers<string>()
  // The types do not know `closeTimeout` yet.
  const options: ClientOptions & { closeTimeout: number } = {
    // Unlike a ws+unix: URL, this takes paths with any character.
    createConnection: () => connect(path),
    maxPayload: MAX_PAYLOAD,
    perMessageDeflate: false,
    closeTimeout: CLOSE_TIMEOUT_MS,
  }
  const socket = new WebSocket('ws://localhost/', options)
  socket.on('message', (data, isBinary) => {
    if (!isBinary) onText(String(data))
  })
  socket.on('error', (error) => end(error.message))
  socket.on('close', () => end('the connection was closed'))
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.once('open', () =>
      resolve({
        closed,
        close: () => socket.close(),
        send: (text) => {
          if (socket.readyState !== WebSocket.OPEN) return false
          socket.send(text)
          return true
        },
      }),
    )
  })
}
