import type { Readable, Writable } from 'node:stream'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { parseJsonLine, type SplitLine, splitLines } from '../../programs/line-splitter.ts'

/** Maximum number of unanswered requests of the agent. */
const OPEN_REQUESTS = 1000

interface MessageStreamOptions {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly lineBytes: number
  /** Called for each session/update, in order, before later messages. */
  onUpdate(params: unknown): void
  /** The pipe accepted a complete message of ours. */
  onWritten(message: AnyMessage): void
  /** Input that is not ACP. It is skipped. */
  onGarbage(what: string): void
  /** While pending, nothing more is read, so that a flood waits in the agent's own pipe. */
  hold(): Promise<void> | undefined
}

/**
 * Sits between the pipes and the protocol library, whose own stream reads without limits, answers garbage
 * with errors, and passes updates out of step with responses. An agent may be broken or hostile: no state
 * here grows with its input, and only well-formed, expected messages pass.
 */
export function openMessageStream(options: MessageStreamOptions): Stream {
  const lines = splitLines(options.stdout as AsyncIterable<Buffer>, options.lineBytes)
  const asked = new Set<unknown>()
  const open = new Set<unknown>()
  let isAfterResponse = false

  /** Handles one line; returns the message if the library must see it. */
  function take({ text, head }: SplitLine): AnyMessage | undefined {
    if (text === undefined) return dropHuge(head.toString())
    if (text.trim() === '') return undefined
    const message = parse(text)
    if (message === undefined) {
      options.onGarbage(text)
    } else if (!('method' in message)) {
      if (asked.delete(message.id)) {
        isAfterResponse = true
        return message as AnyMessage
      }
      options.onGarbage(`a response without a request: ${text}`)
    } else if ('id' in message) {
      open.add(message.id)
      if (open.size > OPEN_REQUESTS) throw new Error('it sends requests without reading the responses')
      return message as AnyMessage
    } else if (message.method === 'session/update') {
      options.onUpdate(message.params)
    } else if (message.method === '$/cancel_request') {
      return message as AnyMessage
    }
    return undefined
  }

  function dropHuge(head: string): undefined {
    // An update is dispensable; a lost request or response would leave both sides waiting forever.
    if (!/"method"\s*:\s*"session\/update"/.test(head)) {
      throw new Error(`it sent a message of more than ${options.lineBytes} bytes`)
    }
    options.onGarbage(`an update of more than ${options.lineBytes} bytes: ${head}`)
    return undefined
  }

  return {
    readable: new ReadableStream<AnyMessage>(
      {
        async pull(controller) {
          for (;;) {
            // Effects of a response come before messages the agent sent after it.
            if (isAfterResponse) await nextTick()
            isAfterResponse = false
            await options.hold()
            const next = await lines.next()
            if (next.done === true) return controller.close()
            const message = take(next.value)
            if (message !== undefined) return controller.enqueue(message)
          }
        },
        cancel: () => void options.stdout.destroy(),
      },
      { highWaterMark: 0 },
    ),
    writable: new WritableStream<AnyMessage>({
      write(message) {
        if ('method' in message && 'id' in message) asked.add(message.id)
        else if ('id' in message) open.delete(message.id)
        return new Promise((resolve, reject) => {
          options.stdin.write(`${JSON.stringify(message)}\n`, (error) => {
            if (error) return reject(error)
            options.onWritten(message)
            resolve()
          })
        })
      },
    }),
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  const value = parseJsonLine(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const message = value as Record<string, unknown>
  const hasMethod = typeof message.method === 'string'
  const hasId = typeof message.id === 'string' || Number.isFinite(message.id)
  if (message.jsonrpc !== '2.0' || !(hasMethod || hasId)) return undefined
  if ('method' in message && !hasMethod) return undefined
  return 'id' in message && !hasId ? undefined : message
}
