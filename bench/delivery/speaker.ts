/** Controls a sender in its pane, and reports by the monotonic clock when the sender began a text. */
import { rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'

export interface Speaker {
  /** For the sender's command line. */
  readonly socket: string
  /** Has the sender print the text. Resolves with the time just before, in nanoseconds. */
  say(text: string): Promise<bigint>
  close(): void
}

export async function openSpeaker(socket: string): Promise<Speaker> {
  const { promise: connected, resolve: connect } = Promise.withResolvers<Socket>()
  const waiting: ((at: bigint) => void)[] = []
  const server = createServer((sender) => {
    createInterface({ input: sender }).on('line', (line) => waiting.shift()?.(BigInt(line)))
    sender.on('error', () => {})
    connect(sender)
  })
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  return {
    socket,
    async say(text) {
      const sender = await connected
      return new Promise((resolve) => {
        waiting.push(resolve)
        sender.write(`${JSON.stringify(text)}\n`)
      })
    },
    close() {
      server.close()
      void connected.then((sender) => sender.destroy())
      rmSync(socket, { force: true })
    },
  }
}
