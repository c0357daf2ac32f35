import { appendFile, copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  followTranscript,
  type GeminiTranscript,
  readRecord,
  searchTranscript,
} from '../../../src/programs/gemini/transcript.ts'
import { searchTranscripts } from '../../../src/programs/transcript-path.ts'
import { createRecordingPort, type RecordingPort } from '../../fakes/recording-port.ts'

/** Written by Gemini CLI 0.61.0. */
const fixture = (name: string) => join(import.meta.dirname, 'fixtures', `${name}.jsonl`)

const FRAME = '[ORCHUB MESSAGE msg_1]\n\nHello\n\n[END ORCHUB MESSAGE msg_1]'

describe('the transcript of Gemini', () => {
  let folder: string
  let port: RecordingPort
  let kinds: string[]
  let forgotten: string[]
  let open: GeminiTranscript | undefined

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'orc-gemini-'))
    port = createRecordingPort()
    kinds = []
    forgotten = []
  })
  afterEach(async () => {
    await open?.close()
    await rm(folder, { recursive: true })
  })

  async function follow(file: string, more: { since?: number; unread?: string[] } = {}) {
    open = followTranscript({
      file,
      from: undefined,
      since: more.since ?? 0,
      unread: more.unread ?? [],
      port: port,
      log: { warn: () => {} },
      onRecord: ({ kind }) => kinds.push(kind),
      onForgotten: (ids) => forgotten.push(...ids),
      onProgress: () => {},
    })
    await open.settled()
    return open
  }

  it('contains the text of the agent, passed on once even if a record is written again with its tools (C4)', async () => {
    await follow(fixture('turn'))
    expect(port.said).toMatchObject([
      { text: 'Running it.', channel: 'transcript', key: '0b5e6117-4294-401e-b915-717e4912e689' },
      { text: expect.stringMatching(/^TOOL SAID/), channel: 'transcript' },
    ])
    expect(kinds).toEqual(['prompt', 'answer', 'answer'])
  })

  it('is read further while a command waits for its response, but the saved position stays before it (C4)', async () => {
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    port.onText = () => answered
    const transcript = await follow(fixture('turn'))
    expect(kinds).toEqual(['prompt', 'answer', 'answer'])
    const before = transcript.position()!.offset
    answer()
    await new Promise((resolve) => setImmediate(resolve))
    expect(transcript.position()!.offset).toBeGreaterThan(before)
  })

  const line = (id: string, type: string, content: unknown) =>
    `${JSON.stringify({ id, timestamp: '2026-11-15T08:27:59.558Z', type, content })}\n`
  const message = (id: string) => [{ text: `[ORCHUB MESSAGE ${id}]\n\nHello\n\n[END ORCHUB MESSAGE ${id}]` }]

  it('no longer contains a message whose turn was cancelled before an answer (C27)', async () => {
    const file = join(folder, 'session.jsonl')
    await writeFile(
      file,
      line('a', 'user', message('msg_1')) +
        line('b', 'info', 'Request cancelled.') +
        line('c', 'user', message('msg_2')) +
        line('d', 'gemini', 'I hear only the second.') +
        line('e', 'info', 'Request cancelled.'),
    )
    await follow(file)
    expect(forgotten).toEqual(['msg_1'])
    expect(port.arrived.filter(({ state }) => state === 'read')).toMatchObject([{ ids: ['msg_2'] }])
    expect(await searchTranscript(file, new Set(['msg_1', 'msg_2']))).toEqual(new Map([['msg_2', 'c']]))
  })

  it('read again, does not withdraw a message that was delivered again after its turn was cancelled (C25)', async () => {
    const file = join(folder, 'session.jsonl')
    await writeFile(
      file,
      line('a', 'user', message('msg_1')) +
        line('b', 'user', message('msg_2')) +
        line('c', 'info', 'Request cancelled.') +
        line('d', 'user', message('msg_1')),
    )
    const transcript = await follow(file)
    expect(forgotten).toEqual(['msg_2'])
    expect(transcript.unread).toEqual(['msg_1'])
    expect(port.arrived.at(-1)).toMatchObject({ ids: ['msg_1'], state: 'submitted' })
    expect(kinds).toEqual(['prompt', 'prompt', 'cancelled', 'prompt'])
  })

  it('closed during a search, forgets nothing: the next service reads it (C25)', async () => {
    const file = join(folder, 'session.jsonl')
    const first = line('a', 'user', [{ text: FRAME }])
    await writeFile(file, first + line('b', 'info', 'Request cancelled.'))
    const { promise: closed, resolve } = Promise.withResolvers<void>()
    // The next line is read at once, and the search for it takes several turns of the loop.
    port.onEvidence = () => void setImmediate(() => resolve(open!.close()))
    await follow(file)
    await closed
    expect(kinds).toEqual(['prompt'])
    expect(forgotten).toEqual([])
    expect(open!.unread).toEqual(['msg_1'])
    expect(open!.position()?.offset).toBe(first.length)
  })

  it('contains the whole conversation again after an interruption, which is not repeated (C25)', async () => {
    await follow(fixture('refused'))
    expect(port.said.map(({ text }) => text)).toEqual([expect.stringMatching(/^FAKE REPLY/), 'Running it.'])
    expect(kinds).toContain('cancelled')
  })

  it('shows which messages it contains, and which are answered', async () => {
    await follow(fixture('refused'))
    expect(port.arrived.slice(0, 2)).toMatchObject([
      { ids: ['msg_1'], state: 'submitted' },
      { ids: ['msg_1'], state: 'read' },
    ])
  })

  it('reports a message from before a restart as read', async () => {
    const file = join(folder, 'session.jsonl')
    await writeFile(file, '')
    const transcript = await follow(file, { unread: ['msg_7'] })
    expect(transcript.unread).toEqual(['msg_7'])
    const lines = (await readFile(fixture('turn'), 'utf8')).split('\n')
    await appendFile(file, `${lines[4]}\n`)
    await port.until(() => port.arrived.length > 0)
    expect(port.arrived).toMatchObject([{ ids: ['msg_7'], state: 'read' }])
    expect(transcript.unread).toEqual([])
  })

  it('reports context usage and cost (C26)', async () => {
    await follow(fixture('turn'))
    expect(port.used[0]).toEqual({
      model: 'gemini-3.8-flash',
      contextTokens: 10,
      contextWindow: 1_048_576,
      spent: {
        key: '0b5e6117-4294-401e-b915-717e4912e689',
        ...{ input: 10, output: 5, cacheRead: 0, cacheWrite: 0 },
      },
    })
  })

  it('ignores text from before the agent', async () => {
    await follow(fixture('turn'), { since: Date.parse('2027-01-01') })
    expect(port.said).toEqual([])
  })

  it('is searched for a message by its id, in all conversations of the agent', async () => {
    const file = join(folder, 'earlier.jsonl')
    await copyFile(fixture('refused'), file)
    const saved = { earlier: [join(folder, 'gone.jsonl'), file], transcript: fixture('turn') }
    const found = await searchTranscripts(saved, ['msg_1', 'msg_2'], searchTranscript)
    const evidence = 'it is in record c1ab20fe-e5e5-4764-af3f-9f5f933e997b of the transcript'
    expect([...found]).toEqual([['msg_1', evidence]])
  })

  it('shows that a conversation was resumed', () => {
    expect(readRecord('{"$set":{"sessionId":"22222222-2222-4333-8444-555555555556"}}')).toEqual({
      kind: 'resumed',
    })
  })

  it.each([
    ['a patch', '{"$set":{"lastUpdated":"2026-11-15T07:43:51.997Z"}}'],
    [
      'a tool’s result',
      '{"id":"a","timestamp":"2026-11-15T07:43:51.997Z","type":"user","content":[{"functionResponse":{}}]}',
    ],
    [
      'a warning',
      '{"id":"a","timestamp":"2026-11-15T07:43:51.997Z","type":"warning","content":"Request cancelled."}',
    ],
    ['half a line', '{"id":"a","timest'],
    ['another thing', '[1, 2]'],
  ])('ignores %s', (_name, line) => {
    expect(readRecord(line)).toBeUndefined()
  })
})
