import { request } from 'node:http'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { FetchLike } from '../../client/client.ts'

/** `fetch` for a service on a Unix socket, which the built-in one does not reach. */
export function fetchOverSocket(socketPath: string): FetchLike {
  return (url, { method, headers, body, signal }) =>
    new Promise((resolve, reject) => {
      const { pathname, search, host } = new URL(url)
      const options = { socketPath, method, path: pathname + search, headers: { ...headers, host } }
      const sent = request({ ...options, ...(signal === undefined ? {} : { signal }) }, (answer) => {
        resolve({
          status: answer.statusCode!,
          // Lazy, because a stream can be consumed only once: as a body or as text.
          get body() {
            return Readable.toWeb(answer) as ReadableStream<Uint8Array>
          },
          text: () => text(answer),
        })
      })
      sent.on('error', reject)
      sent.end(body)
    })
}
