import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface TcpProxy {
  readonly port: number
  /** From now on, existing connections lose answers, or pass nothing in either direction. */
  mute(what: 'answers' | 'all'): void
  /** Closes the existing connections; new ones work. */
  cut(): void
  close(): Promise<void>
}

/** A TCP proxy on loopback that can fail in the middle of an exchange. */
export async function startTcpProxy(target: number): Promise<TcpProxy> {
  interface Line {
    client: Socket
    server: Socket
    muted: 'nothing' | 'answers' | 'all'
  }
  const lines = new Set<Line>()
  const proxy = createServer((client) => {
    const server = connect(target, '127.0.0.1')
    const line: Line = { client, server, muted: 'nothing' }
    lines.add(line)
    client.on('data', (data) => void (line.muted !== 'all' && server.write(data)))
    server.on('data', (data) => void (line.muted === 'nothing' && client.write(data)))
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ] as const) {
      socket.setNoDelay()
      socket.on('error', () => {})
      socket.on('close', () => {
        lines.delete(line)
        other.destroy()
      })
    }
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const cut = () => {
    for (const line of lines) line.client.destroy()
  }
  return {
    port: (proxy.address() as AddressInfo).port,
    mute(what) {
      for (const line of lines) line.muted = what
    },
    cut,
    async close() {
      cut()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
