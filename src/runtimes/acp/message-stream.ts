import type { Readable, Writable } from 'node:stream'
import { setImmediate as nextTick } from 'node:timers/promises'
import type { AnyMessage, Stream } from '@agentclientprotocol/sdk'
import { type Line, readLines } from './lines.ts'

/** As much as the agent may ask without taking the answers. */
const OPEN_REQUESTS = 1000

export interface MessageStreamOrder {
  readonly stdin: Writable
  readonly stdout: Readable
  readonly lineBytes: number
  /** Each session/update, in order, before anything that came after it. */
  onUpdate(params: unknown): void
  /** A message of ours was taken by the pipe, to its last byte. */
  onWritten(message: AnyMessage): void
  /** What came that is no ACP. It is skipped. */
  onGarbage(what: string): void
  /** While it is pending nothing more is read, so that a flood waits in the agent's own pipe. */
  hold(): Promise<void> | undefined
}

/**
 * Between the pipes and the protocol library, whose own stream reads without end, answers garbage with errors, and
 * hands updates over out of step with responses. An agent may be broken or hostile: nothing here grows with what it
 * sends, and only what is well-formed and expected passes.
 */
export function openMessageStream(order: MessageStreamOrder): Stream {
  const lines = readLines(order.stdout as AsyncIterable<Buffer>, order.lineBytes)
  const asked = new Set<unknown>()
  const open = new Set<unknown>()
  let isAfterResponse = false

  /** Deals with one line; returns what the library must see of it. */
  function take(line: Line): AnyMessage | undefined {
    if (line.isCut) return dropHuge(line.text)
    if (line.text.trim() === '') return undefined
    const message = parse(line.text)
    if (message === undefined) {
      order.onGarbage(line.text)
    } else if (!('method' in message)) {
      if (asked.delete(message.id)) {
        isAfterResponse = true
        return message as AnyMessage
      }
      order.onGarbage(`a response to nothing we asked: ${line.text}`)
    } else if ('id' in message) {
      open.add(message.id)
      if (open.size > OPEN_REQUESTS) throw new Error('it asks and asks without taking the answers')
      return message as AnyMessage
    } else if (message.method === 'session/update') {
      order.onUpdate(message.params)
    } else if (message.method === '$/cancel_request') {
      return message as AnyMessage
    }
    return undefined
  }

  function dropHuge(head: string): undefined {
    // An update can be done without; a lost request or response would leave both sides waiting for ever.
    if (!/"method"\s*:\s*"session\/update"/.test(head)) {
      throw new Error(`it sent a message of more than ${order.lineBytes} bytes`)
    }
    order.onGarbage(`an update of more than ${order.lineBytes} bytes: ${head}`)
    return undefined
  }

  return {
    readable: new ReadableStream<AnyMessage>(
      {
        async pull(controller) {
          for (;;) {
            // What a response sets off comes before whatever the agent sent after it.
            if (isAfterResponse) await nextTick()
            isAfterResponse = false
            await order.hold()
            const next = await lines.next()
            if (next.done === true) return controller.close()
            const message = take(next.value)
            if (message !== undefined) return controller.enqueue(message)
          }
        },
        cancel: () => void order.stdout.destroy(),
      },
      { highWaterMark: 0 },
    ),
    writable: new WritableStream<AnyMessage>({
      write(message) {
        if ('method' in message && 'id' in message) asked.add(message.id)
        else if ('id' in message) open.delete(message.id)
        return new Promise((resolve, reject) => {
          order.stdin.write(`${JSON.stringify(message)}\n`, (error) => {
            if (error) return reject(error)
            order.onWritten(message)
            resolve()
          })
        })
      },
    }),
  }
}

function parse(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    const message = value as Record<string, unknown>
    const hasMethod = typeof message.method === 'string'
    const hasId = typeof message.id === 'string' || Number.isFinite(message.id)
    if (message.jsonrpc !== '2.0' || !(hasMethod || hasId)) return undefined
    if ('method' in message && !hasMethod) return undefined
    return 'id' in message && !hasId ? undefined : message
  } catch {
    return undefined
  }
}
