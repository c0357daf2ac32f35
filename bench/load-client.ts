/**
 * A client in its own process that uses little CPU: raw sockets, one request in flight on each.
 * node bench/load-client.ts '{"port":…,"path":…,"token":…,"count":…,"outstanding":…,"batch":…}' prints the figures as JSON.
 */
import { createHmac } from 'node:crypto'
import { connect, type Socket } from 'node:net'

export interface Load {
  port: number
  path: string
  token: string
  /** Requests in total. */
  count: number
  outstanding: number
  /** Commands in one request; any number but one is sent as an array. */
  batch: number
  /** Differs between runs, so that idempotency keys are new. */
  run: string
  /** Instead of sending a message, delegates a task to the holder of this token, who reports it as done. */
  worker?: string
  /** Sent instead of a message, with a number in it. */
  payload?: Record<string, unknown>
  /** Sends the payload like GitHub: a webhook of this event, signed with this secret. */
  webhook?: { event: string; secret: string }
}

export interface Figures {
  /** Requests per second. */
  rate: number
  p50: number
  p99: number
  failed: number
}

const load = JSON.parse(process.argv[2]!) as Load

function request(number: number): string {
  const command = (index: number) => ({
    type: 'send_message',
    to: 'Worker',
    title: 'bench',
    content: `This is message ${number}.${index} for the worker`,
  })
  const task = { type: 'delegate', to: 'Worker', task: `This is task ${number}.0 for the worker` }
  if (load.worker !== undefined) return post(load.token, `${number}`, task)
  if (load.payload !== undefined) return post(load.token, `${number}`, { ...load.payload, bench: number })
  const commands = load.batch === 1 ? command(0) : Array.from({ length: load.batch }, (_, i) => command(i))
  return post(load.token, `${number}`, commands)
}

/** The worker's report on the task that the answer names. */
function report(number: number, answer: string): string {
  const [, id] = /"task_id":"(task_\d+)"/.exec(answer) ?? []
  const done = { type: 'report', status: 'completed', in_response_to: id, result: `Task ${number} is done` }
  return post(load.worker!, `${number}r`, done)
}

function post(token: string, number: string, content: unknown): string {
  const body = JSON.stringify(content)
  // Time-ordered, like those of the typed client.
  const key = `${load.run}-${number.padStart(10, '0')}`
  const { webhook } = load
  const signed =
    webhook === undefined
      ? []
      : [
          `X-GitHub-Event: ${webhook.event}`,
          `X-GitHub-Delivery: ${key}`,
          `X-Hub-Signature-256: sha256=${createHmac('sha256', webhook.secret).update(body).digest('hex')}`,
        ]
  return [
    `POST ${load.path} HTTP/1.1`,
    `Host: 127.0.0.1:${load.port}`,
    `Authorization: Bearer ${token}`,
    `Idempotency-Key: ${key}`,
    'Content-Type: application/json',
    ...signed,
    `Content-Length: ${Buffer.byteLength(body)}`,
    '',
    body,
  ].join('\r\n')
}

/** Length of a complete answer at the start of the buffer, or 0. */
function answerLength(buffer: Buffer): number {
  const head = buffer.indexOf('\r\n\r\n')
  if (head === -1) return 0
  const match = /content-length: (\d+)/i.exec(buffer.toString('latin1', 0, head))
  const length = head + 4 + Number(match?.[1] ?? 0)
  return buffer.length >= length ? length : 0
}

/** The first digit of the status code: `2` for 200. */
const TWO = 0x32
/** Large bodies are built before the clock starts. */
const ready =
  load.payload === undefined ? undefined : Array.from({ length: load.count }, (_, number) => request(number))
const times: number[] = []
let next = 0
let failed = 0

function lane(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    let startedAt = 0
    let received = Buffer.alloc(0)
    let number = 0
    let isReported = false
    const send = () => {
      if (next >= load.count) {
        socket.end()
        resolve()
        return
      }
      number = next++
      isReported = load.worker === undefined
      const text = ready?.[number] ?? request(number)
      startedAt = performance.now()
      socket.write(text)
    }
    socket.setNoDelay(true)
    socket.on('connect', send)
    socket.on('error', reject)
    socket.on('data', (data) => {
      received = received.length === 0 ? data : Buffer.concat([received, data])
      const length = answerLength(received)
      if (length === 0) return
      if (received[9] !== TWO) failed += 1
      const answer = received.subarray(0, length)
      received = received.subarray(length)
      if (!isReported) {
        isReported = true
        socket.write(report(number, answer.toString('latin1')))
        return
      }
      times.push(performance.now() - startedAt)
      send()
    })
  })
}

const startedAt = performance.now()
await Promise.all(Array.from({ length: load.outstanding }, () => lane(connect(load.port, '127.0.0.1'))))
const seconds = (performance.now() - startedAt) / 1000
times.sort((a, b) => a - b)
const at = (share: number) => times[Math.min(times.length - 1, Math.floor(times.length * share))]!
const figures: Figures = { rate: load.count / seconds, p50: at(0.5), p99: at(0.99), failed }
console.log(JSON.stringify(figures))
