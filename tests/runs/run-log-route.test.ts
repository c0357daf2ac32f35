import { getEventListeners } from 'node:events'
import { appendFileSync, type FSWatcher, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createClient } from '../../src/client/client.ts'
import {
  eventsIn,
  type OpenStream,
  openStream,
  openTestService,
  type TestService,
} from '../harness/service.ts'

/** Current watchers of a file. */
const watching = vi.hoisted(() => new Map<FSWatcher, string>())
vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>()
  const watch = (path: string, ...rest: never[]) => {
    const watcher: FSWatcher = (fs.watch as (...all: unknown[]) => FSWatcher)(path, ...rest)
    watching.set(watcher, path)
    watcher.once('close', () => watching.delete(watcher))
    return watcher
  }
  return { ...fs, watch }
})

/** After it the stream waits for more. */
const LONGER_THAN_A_PAUSE_MS = 300

let service: TestService
let log: string
let path: string
let streams: OpenStream[]

beforeEach(async () => {
  service = await openTestService()
  streams = []
  const folder = join(service.folder, 'plans')
  mkdirSync(folder)
  const client = createClient({ url: service.url, token: service.tokens.operator })
  const { run_id } = await client.startRun({
    plan: 'agents: { a: { command: "echo printed; echo Made. > outbox/summary.md; echo x > outbox/x.txt" } }',
    folder,
  })
  for await (const _ of client.runEvents(run_id)) {
    // Until its end.
  }
  const { place } = await client.run(run_id)
  log = readdirSync(place, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.log'))
    .map((name) => join(place, name))[0]!
  path = `/api/v1/runs/${run_id}/agents/a/log/events`
})
afterEach(async () => {
  for (const stream of streams) stream.drop()
  vi.restoreAllMocks()
  await service.close()
})

async function open(at = path) {
  const stream = await openStream(service.port, at, service.tokens.operator)
  streams.push(stream)
  return stream
}
const watchers = () => [...watching].filter(([, place]) => place === dirname(log)).map(([one]) => one)
const told = (stream: OpenStream, times: number) =>
  stream.until(() => eventsIn(stream.text()).length >= times)

describe('GET /api/v1/runs/{id}/agents/{agent}/log/events', () => {
  it('watches while somebody reads, and refuses tokens with too many open streams', async () => {
    const first = await open()
    await told(first, 1)
    expect(watchers()).toHaveLength(1)
    first.drop()
    await vi.waitFor(() => expect(watchers()).toEqual([]))
    for (let count = 0; count < 64; count++) await open('/api/v1/events')
    expect((await open()).status).toBe(429)
    expect(watchers()).toEqual([])
  })

  it('ends when the log cannot be watched any more, so that the reader reconnects', async () => {
    const stream = await open()
    await told(stream, 1)
    watchers()[0]!.emit('error', new Error('no more watches'))
    await stream.ended
    await told(await open(), 1)
  })

  it('listens once for its end, however much the agent prints', async () => {
    const signals = new Set<AbortSignal>()
    const listen = EventTarget.prototype.addEventListener
    vi.spyOn(EventTarget.prototype, 'addEventListener').mockImplementation(function (
      this: EventTarget,
      ...all: Parameters<typeof listen>
    ) {
      if (this instanceof AbortSignal) signals.add(this)
      listen.apply(this, all)
    })
    const stream = await open()
    for (let count = 1; count <= 5; count++) {
      await told(stream, count)
      await setTimeout(LONGER_THAN_A_PAUSE_MS)
      appendFileSync(log, 'more\n')
    }
    await told(stream, 6)
    const most = Math.max(...[...signals].map((signal) => getEventListeners(signal, 'abort').length))
    // The stream has one listener, and a pause may have another.
    expect(most).toBeLessThanOrEqual(2)
  })
})
