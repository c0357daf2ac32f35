import {
  appendFileSync,
  chmodSync,
  linkSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { WorkspaceProblem } from '../../src/workspaces/problem.ts'
import { postMessage, type ReceivedMessage, watchQueue } from '../../src/workspaces/queue.ts'
import { codesOf, expectOk, makePlace, write } from './harness.ts'

const message = {
  from: 'agent-a',
  to: 'agent-b',
  timestamp: '2024-01-15T10:30:00Z',
  type: 'data_ready',
  content: { rows: 3 },
} as const

const nextAbove = async (highest: number) => highest + 1

const post = (folder: string, posted: Parameters<typeof postMessage>[1], reserve = nextAbove) =>
  postMessage(folder, posted, reserve)

function watching(folder = makePlace()) {
  const received: ReceivedMessage[] = []
  const refused: WorkspaceProblem[] = []
  let told: (() => void) | undefined
  const watch = watchQueue({
    folder,
    received(item) {
      received.push(item)
      told?.()
    },
    refused(item) {
      refused.push(item)
      told?.()
    },
    retryDelays: [5, 10, 20, 40],
  })
  onTestFinished(() => watch.close())
  async function until(done: () => boolean) {
    while (!done()) {
      await new Promise<void>((resolve) => {
        told = resolve
      })
    }
  }
  return { folder, received, refused, until, watch }
}

describe('the message queue', () => {
  it('numbers messages across all pairs (S4.16)', async () => {
    const folder = makePlace()
    expectOk(await post(folder, message))
    expectOk(await post(folder, { ...message, from: 'agent-b', to: 'agent-a', type: 'answer' }))
    expect(readdirSync(folder).sort()).toEqual(['agent-a_to_agent-b_001.json', 'agent-b_to_agent-a_002.json'])
    const { received, until } = watching(folder)
    await until(() => received.length === 2)
    expect(received).toMatchObject([
      { ...message, file: 'agent-a_to_agent-b_001.json', number: 1 },
      {
        ...message,
        from: 'agent-b',
        to: 'agent-a',
        type: 'answer',
        file: 'agent-b_to_agent-a_002.json',
        number: 2,
      },
    ])
  })

  it('never reuses a number, even if a reservation takes long', async () => {
    const folder = makePlace()
    const others = Promise.withResolvers<void>()
    const slow = post(folder, { ...message, from: 'slow' }, async (highest) => {
      await others.promise
      return highest + 1
    })
    const quick = expectOk(await post(folder, message))
    others.resolve()
    expect([quick, expectOk(await slow)]).toEqual(['agent-a_to_agent-b_001.json', 'slow_to_agent-b_002.json'])
    expect(readdirSync(folder).sort()).toEqual(['agent-a_to_agent-b_001.json', 'slow_to_agent-b_002.json'])
  })

  it('goes past 999', async () => {
    const folder = makePlace()
    write(folder, { 'agent-a_to_agent-b_999.json': JSON.stringify(message) })
    expect(expectOk(await post(folder, message))).toBe('agent-a_to_agent-b_1000.json')
  })

  it('lets the caller choose the next number, and refuses when none is left', async () => {
    const folder = makePlace()
    const posted = await post(folder, message, async (highest) => highest + 5)
    expect(expectOk(posted)).toBe('agent-a_to_agent-b_005.json')
    expect(codesOf(await post(folder, message, async () => 1_000_000_000))).toEqual(['exists'])
    expect(readdirSync(folder)).toEqual(['agent-a_to_agent-b_005.json'])
  })

  it('refuses messages that are too large or invalid (C20)', async () => {
    const folder = makePlace()
    const refusal = async (change: object) => codesOf(await post(folder, { ...message, ...change }))
    expect(await refusal({ content: 'x'.repeat(102_400) })).toEqual(['too_large'])
    expect(await refusal({ from: '../x' })).toEqual(['invalid'])
    expect(await refusal({ type: 'shout' })).toEqual(['invalid'])
    expect(codesOf(await post(join(folder, 'none'), message))).toEqual(['missing'])
    expect(readdirSync(folder)).toEqual([])
  })

  it('reports files that are not messages, and reads nothing from outside', async () => {
    const folder = makePlace()
    const outside = makePlace()
    write(outside, { secret: JSON.stringify({ ...message, content: 'SECRET' }) })
    symlinkSync(join(outside, 'secret'), join(folder, 'agent-a_to_agent-b_001.json'))
    linkSync(join(outside, 'secret'), join(folder, 'agent-a_to_agent-b_002.json'))
    write(folder, {
      'agent-a_to_agent-b_003.json': '{"from"',
      'agent-x_to_agent-b_004.json': JSON.stringify(message),
      'agent-a_to_agent-b_005.json': 'x'.repeat(200_000),
      'agent-a_to_agent-b_006.json': '\ufeff{}',
      'a_to_b_to_c_007.json': JSON.stringify({ ...message, from: 'a_to_b', to: 'c' }),
      'readme.txt': 'no message',
    })
    const { received, refused, until } = watching(folder)
    await until(() => received.length === 1 && refused.length === 6)
    expect(received).toMatchObject([{ from: 'a_to_b', to: 'c' }])
    expect(refused.map(({ code }) => code).sort()).toEqual([
      ...['hard_link', 'invalid', 'invalid', 'symbolic_link', 'too_large', 'torn'],
    ])
    expect(JSON.stringify({ received, refused })).not.toContain('SECRET')
  })
})

describe('watching the queue', () => {
  it('reports each message once, in order: existing and new ones', async () => {
    const folder = makePlace()
    for (let index = 0; index < 3; index++) expectOk(await post(folder, { ...message, content: index }))
    const { received, refused, until } = watching(folder)
    await until(() => received.length === 3)
    for (let index = 3; index < 6; index++) expectOk(await post(folder, { ...message, content: index }))
    await until(() => received.length === 6)
    expect(received.map(({ content }) => content)).toEqual([0, 1, 2, 3, 4, 5])
    expect(refused).toEqual([])
  })

  it('sorts messages that arrive together, and ignores removed ones', async () => {
    const { folder, received, refused, until } = watching()
    await setTimeout(20)
    const put = (number: number, content: number) =>
      writeFileSync(
        join(folder, `agent-a_to_agent-b_00${number}.json`),
        JSON.stringify({ ...message, content }),
      )
    for (const number of [4, 3, 2]) put(number, number)
    rmSync(join(folder, 'agent-a_to_agent-b_003.json'))
    await until(() => received.length === 2)
    expect(received.map(({ content }) => content)).toEqual([2, 4])
    put(3, 33)
    await until(() => received.length === 3)
    await setTimeout(100)
    expect(received.map(({ content }) => content)).toEqual([2, 4, 33])
    expect(refused).toEqual([])
  })

  it('waits for a message that is written in pieces, and reports one that stays invalid', async () => {
    const { folder, received, refused, until } = watching()
    const text = JSON.stringify(message)
    const file = join(folder, 'agent-a_to_agent-b_001.json')
    writeFileSync(file, text.slice(0, 10))
    writeFileSync(join(folder, 'agent-a_to_agent-b_002.json'), 'nonsense')
    await setTimeout(10)
    appendFileSync(file, text.slice(10))
    writeFileSync(join(folder, 'tmp'), JSON.stringify({ ...message, from: 'c' }))
    renameSync(join(folder, 'tmp'), join(folder, 'c_to_agent-b_003.json'))
    await until(() => received.length === 2 && refused.length === 1)
    expect(received.map(({ file: name }) => name).sort()).toEqual([
      'agent-a_to_agent-b_001.json',
      'c_to_agent-b_003.json',
    ])
    expect(refused.map(({ path }) => path)).toEqual(['messages/agent-a_to_agent-b_002.json'])
  })

  it('reports a new message under an old name, and none that was only touched', async () => {
    const { folder, received, refused, until, watch } = watching()
    const file = join(folder, 'agent-a_to_agent-b_001.json')
    const put = (content: string) => writeFileSync(file, JSON.stringify({ ...message, content }))
    put('one')
    await until(() => received.length === 1)
    appendFileSync(file, '\n')
    chmodSync(file, 0o600)
    await setTimeout(50)
    rmSync(file)
    put('two')
    await until(() => received.length === 2)
    rmSync(file)
    await setTimeout(50)
    put('one')
    await until(() => received.length === 3)
    writeFileSync(file, 'nonsense')
    await until(() => refused.length === 1)
    put('three')
    await until(() => received.length === 4)
    watch.look()
    expect(received.map(({ content }) => content)).toEqual(['one', 'two', 'one', 'three'])
    expect(refused).toHaveLength(1)
  })
})
