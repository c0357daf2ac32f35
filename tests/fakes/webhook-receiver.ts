import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'

export interface Letter {
  path: string
  headers: IncomingHttpHeaders
  body: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every shape.
  json: any
}

export interface Receiver {
  url: string
  letters: Letter[]
  /** How to answer the next deliveries. */
  answer: (letter: Letter, response: ServerResponse) => void
  /** Waits until this many have arrived. */
  got(count: number): Promise<Letter[]>
  close(): Promise<void>
}

export const taken = (_: Letter, response: ServerResponse) => void response.writeHead(204).end()

/** A receiver of webhooks on loopback. */
export async function openReceiver(port = 0): Promise<Receiver> {
  const letters: Letter[] = []
  const server: Server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (piece) => (body += piece))
    request.on('end', () => {
      const letter = { path: request.url!, headers: request.headers, body, json: JSON.parse(body || '{}') }
      letters.push(letter)
      receiver.answer(letter, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const { port: bound } = server.address() as { port: number }
  const receiver: Receiver = {
    url: `http://127.0.0.1:${bound}/hook`,
    letters,
    answer: taken,
    async got(count) {
      const deadline = Date.now() + 10_000
      while (letters.length < count) {
        if (Date.now() > deadline) throw new Error(`only ${letters.length} of ${count} came`)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      return letters
    },
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return receiver
}

/** Verifies the signature as Standard Webhooks specifies. */
export function isGenuine({ headers, body }: Letter, secret: string): boolean {
  const key = secret.startsWith('whsec_')
    ? Buffer.from(secret.slice('whsec_'.length), 'base64')
    : Buffer.from(secret)
  const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
  const expected = createHmac('sha256', key).update(signed).digest()
  return String(headers['webhook-signature'])
    .split(' ')
    .some((one) => {
      const [version, signature = ''] = one.split(',')
      const given = Buffer.from(signature, 'base64')
      return version === 'v1' && given.length === expected.length && timingSafeEqual(given, expected)
    })
}
