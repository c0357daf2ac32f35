import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { backoff, wait } from '../../src/client/backoff.ts'
import { createClient } from '../../src/client/client.ts'
import { newIdempotencyKey, readEvents, readLines } from '../../src/client/transport.ts'

/** The text cut at the given places, as pieces that arrive one by one. */
async function* cut(text: string, places: readonly number[]) {
  let from = 0
  for (const place of [...places].map((one) => one % (text.length + 1)).sort((a, b) => a - b)) {
    yield text.slice(from, place)
    from = place
  }
  yield text.slice(from)
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

describe('the client', () => {
  it('imports only its own files and the errors, because every `orc` call waits for it', () => {
    const folder = join(import.meta.dirname, '../../src/client')
    for (const file of readdirSync(folder)) {
      const source = readFileSync(join(folder, file), 'utf8')
      const statements = /^(?:import(?! type)|export \{)[^']*? from '([^']+)'/gm
      const loaded = [...source.matchAll(statements)].map((match) => match[1]!)
      expect(loaded.filter((path) => !path.startsWith('./') && path !== '../base/errors.ts')).toEqual([])
    }
  })
})

describe('an idempotency key', () => {
  it('is a UUID of version 7', () => {
    expect(newIdempotencyKey()).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
  })

  it('increases with time, so that the store appends it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 47 }), fc.integer({ min: 1, max: 10_000 }), (now, later) => {
        expect(newIdempotencyKey(now) < newIdempotencyKey(now + later)).toBe(true)
      }),
    )
    expect(newIdempotencyKey(0x0123456789ab)).toMatch(/^01234567-89ab-7/)
  })

  it('is never the same twice', () => {
    expect(new Set(Array.from({ length: 10_000 }, () => newIdempotencyKey(7))).size).toBe(10_000)
  })
})

describe('lines and events', () => {
  it('are the same however the text is split', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: fc.constantFrom('a', 'é', '🙂', '"', ':') })),
        fc.array(fc.nat()),
        async (lines, places) => {
          const text = lines.map((line) => `${line}\n`).join('')
          expect(await collect(readLines(cut(text, places)))).toEqual(lines)
          const events = lines.map((data, id) => ({ id: String(id), data: JSON.stringify(data) }))
          const stream = events
            .map(({ id, data }) => `event: x\nid: ${id}\ndata: ${data}\n\n: beat\n\n`)
            .join('')
          expect(await collect(readEvents(cut(stream, places)))).toEqual(events)
        },
      ),
    )
  })

  it('leave out a truncated event, and keep the position of one without data', async () => {
    const text = 'retry: 1000\nid: 7\n\n: beat\n\nevent: x\nid: 8\ndata: {}\n\nevent: x\nid: 9\ndata: {'
    expect(await collect(readEvents(cut(text, [])))).toEqual([
      { id: '7', data: undefined },
      { id: '8', data: '{}' },
    ])
  })
})

describe('the wait between attempts', () => {
  it('grows up to a bound, with jitter', () => {
    for (let failures = 0; failures < 40; failures++) {
      const most = Math.min(10_000, 100 * 2 ** failures)
      const waits = Array.from({ length: 50 }, () => backoff(failures))
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(most / 2)
      expect(Math.max(...waits)).toBeLessThanOrEqual(most)
      expect(new Set(waits).size).toBeGreaterThan(1)
    }
  })

  it('ends early with its signal', async () => {
    const stop = new AbortController()
    const waiting = wait(60_000, stop.signal)
    stop.abort()
    await waiting
    await wait(60_000, stop.signal)
  })
})

describe('a stream that went silent', () => {
  it('is abandoned after 40 s without a byte, and reopened where it stopped', async () => {
    vi.useFakeTimers()
    try {
      const asked: (string | undefined)[] = []
      const client = createClient({
        url: 'http://127.0.0.1:1',
        token: 'x',
        fetch: async (_url, { headers }) => {
          asked.push(headers['last-event-id'])
          const text = `id: ${asked.length}\ndata: {"seq":${asked.length}}\n\n`
          // Sends one event, then nothing, and never ends.
          const body = new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
          })
          return { status: 200, body, text: async () => '' }
        },
      })
      const stop = new AbortController()
      const events = client.events({ signal: stop.signal })
      expect((await events.next()).value).toMatchObject({ seq: 1 })
      const next = events.next()
      await vi.advanceTimersByTimeAsync(39_000)
      expect(asked).toEqual([undefined])
      await vi.advanceTimersByTimeAsync(12_000)
      expect((await next).value).toMatchObject({ seq: 2 })
      expect(asked).toEqual([undefined, '1'])
      stop.abort()
    } finally {
      vi.useRealTimers()
    }
  })
})
