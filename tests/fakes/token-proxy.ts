import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface TokenProxy {
  readonly port: number
  /** From now on, forwards every request there with this token. */
  forward(to: { port: number; token: string }): void
  close(): Promise<void>
}

/** Adds a token to every request and changes nothing else, for programs that can't send one. */
export async function startTokenProxy(): Promise<TokenProxy> {
  let target = { port: 0, token: '' }
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming
    const onward = request({
      host: '127.0.0.1',
      port: target.port,
      method,
      path: url,
      headers: { ...headers, authorization: `Bearer ${target.token}` },
    })
    onward.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    forward(to) {
      target = to
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
