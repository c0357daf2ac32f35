import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Session, TerminalSnapshot } from '../../../src/runtimes/runtime.ts'
import {
  eventsIn,
  type OpenStream,
  openStream,
  openTestService,
  type TestService,
} from '../../harness/service.ts'

/** Longer than the pause between two looks at a terminal in which nothing happens. */
const LONGER_THAN_A_PAUSE_MS = 600

let service: TestService
let streams: OpenStream[]
/** Looks that wait for the test to say what they see. */
let looks: PromiseWithResolvers<TerminalSnapshot>[]

beforeEach(async () => {
  service = await openTestService()
  streams = []
  looks = []
  const session = {
    state: 'idle',
    takeOver: () => ({ type: async () => {}, paste: async () => {}, release() {} }),
    snapshot() {
      const look = Promise.withResolvers<TerminalSnapshot>()
      looks.push(look)
      return look.promise
    },
  } as unknown as Session
  vi.spyOn(service.engine.sessions, 'session').mockImplementation(() => session)
})
afterEach(async () => {
  for (const stream of streams) stream.drop()
  see('the end')
  vi.restoreAllMocks()
  await service.close()
})

async function open(token = service.tokens.operator, query = '') {
  const stream = await openStream(service.port, `/api/v1/agents/Worker/terminal/events${query}`, token)
  streams.push(stream)
  return stream
}
const see = (...rows: string[]) => looks.at(-1)?.resolve({ columns: 80, rows, cursor: undefined })
const frames = (stream: OpenStream) => eventsIn(stream.text()).map(({ data }) => data)
const shows = (stream: OpenStream, row: string) =>
  stream.until(() => frames(stream).some((frame) => JSON.stringify(frame.rows).includes(row)))
const looked = (times: number) => vi.waitFor(() => expect(looks).toHaveLength(times), { timeout: 5000 })

describe('GET /api/v1/agents/{agent}/terminal/events', () => {
  it('reads a terminal once for all viewers (S2.16)', async () => {
    const all = [await open(), await open(), await open(await service.mint(null))]
    await looked(1)
    see('first')
    for (const stream of all) await shows(stream, 'first')
    await looked(2)
    see('second')
    for (const stream of all) await shows(stream, 'second')
    await looked(3)
    for (const stream of all)
      expect(frames(stream).map(({ rows }) => rows)).toEqual([[[0, 'first']], [[0, 'second']]])
  })

  it('gives a later viewer the known rows without another read, and then the changes', async () => {
    const first = await open()
    await looked(1)
    see('one', 'two')
    await shows(first, 'two')
    await looked(2)
    const second = await open()
    await shows(second, 'two')
    expect(looks).toHaveLength(2)
    expect(frames(second)[0].rows).toEqual([
      [0, 'one'],
      [1, 'two'],
    ])
    see('one', 'three')
    for (const stream of [first, second]) {
      await shows(stream, 'three')
      expect(frames(stream).at(-1).rows).toEqual([[1, 'three']])
    }
  })

  it('stops reading when the last viewer leaves, and not before', async () => {
    const [first, second] = [await open(), await open()]
    await looked(1)
    see('still here')
    await shows(second, 'still here')
    first.drop()
    await first.ended
    await looked(2)
    see('for the other')
    await shows(second, 'for the other')
    await looked(3)
    second.drop()
    await second.ended
    see('for nobody')
    await new Promise((resolve) => setTimeout(resolve, LONGER_THAN_A_PAUSE_MS))
    expect(looks).toHaveLength(3)
    const third = await open()
    await looked(4)
    see('again')
    await shows(third, 'again')
    expect(third.text()).not.toContain('for nobody')
  })

  it('tells each viewer at once who has taken it over, also while nothing changes', async () => {
    const holder = await open()
    const onlooker = await open(await service.mint(null))
    await looked(1)
    see('calm')
    for (const stream of [holder, onlooker]) await shows(stream, 'calm')
    await looked(2)
    const taken = await service.call('POST', '/api/v1/agents/Worker/terminal/take-over', { body: {} })
    expect(taken.status).toBe(200)
    for (const stream of [holder, onlooker]) await stream.until(() => frames(stream).length === 2)
    expect(frames(holder)[1]).toMatchObject({ taken_by: 'operator', taken_here: true, rows: [] })
    expect(frames(onlooker)[1]).toMatchObject({ taken_by: 'operator', taken_here: false, rows: [] })
    expect(looks).toHaveLength(2)
  })

  it('keeps a take-over for windows that show it, not for streams with `for=notice` (C27)', async () => {
    const shown = await open()
    const listener = await open(undefined, '?for=notice')
    await looked(1)
    see('both')
    for (const stream of [shown, listener]) await shows(stream, 'both')
    await service.call('POST', '/api/v1/agents/Worker/terminal/take-over', { body: {} })
    await shown.until(() => frames(shown).at(-1).taken_here === true)
    shown.drop()
    // Less in all than what ends a take-over in which nobody types.
    await vi.waitFor(
      async () => {
        await service.clock.advance(11_000)
        const { json } = await service.get('/api/v1/audit?type=terminal.released')
        expect(json.entries).toMatchObject([{ text: expect.stringContaining('by closing its window') }])
      },
      { timeout: 2000, interval: 100 },
    )
    await looked(2)
    see('both', 'still told')
    await shows(listener, 'still told')
    expect(frames(listener).at(-1)).not.toHaveProperty('taken_by')
    expect((await service.get('/api/v1/agents/Worker/terminal/events?for=ever')).status).toBe(400)
  })

  it('ends for all viewers when a read fails; the next viewer starts anew', async () => {
    const all = [await open(), await open()]
    await looked(1)
    looks[0]!.reject(new Error('there is no tmux any more'))
    for (const stream of all) await stream.ended
    const next = await open()
    await looked(2)
    see('back')
    await shows(next, 'back')
  })
})
