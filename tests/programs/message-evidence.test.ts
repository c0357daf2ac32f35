import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { compilePatterns } from '../../src/programs/any/patterns.ts'
import { searchTranscript } from '../../src/programs/claude-code/transcript.ts'
import { searchTranscript as searchGemini } from '../../src/programs/gemini/transcript.ts'
import { linesOf } from '../../src/programs/line-splitter.ts'
import { leadingPart, messageIdsIn } from '../../src/programs/message-evidence.ts'

const framed = (id: string, content = 'hello') =>
  `[ORCHUB MESSAGE ${id}]\nFrom: lead\n\n${content}\n\n[END ORCHUB MESSAGE ${id}]`

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}

describe('the ids of the messages in a text', () => {
  it.each([
    ['one', framed('msg_1'), ['msg_1']],
    ['several in order', `${framed('msg_2')}\n\n${framed('msg_12')}`, ['msg_2', 'msg_12']],
    ['the same twice', `${framed('msg_2')}\n${framed('msg_2')}`, ['msg_2']],
    ['a header that a person quotes', 'what was [ORCHUB MESSAGE msg_9] about?', []],
    ['a message that was cut off', framed('msg_9').slice(0, -5), []],
    ['the end of another', '[ORCHUB MESSAGE msg_1] [END ORCHUB MESSAGE msg_12]', []],
    ['an end before its beginning', '[END ORCHUB MESSAGE msg_1] [ORCHUB MESSAGE msg_1]', []],
  ])('are those of complete envelopes: %s (C25)', (_, text, ids) => {
    expect(messageIdsIn(text)).toEqual(ids)
  })

  it('are found in linear time, however many beginnings have no end', () => {
    const text = Array.from({ length: 50_000 }, (_, n) => `[ORCHUB MESSAGE msg_${n}]`).join('')
    expect(messageIdsIn(text + framed('msg_x'))).toEqual(['msg_x'])
  })

  it('are not prefixes of other ids', () => {
    const submitted = compilePatterns({ idle: '> $', submitted: 'got {id}' }).submitted('msg_1')!
    expect(submitted.test('got msg_12')).toBe(false)
    expect(submitted.test('got msg_1, thanks')).toBe(true)
  })
})

describe('a message with Unicode line separators', () => {
  let root: string
  let file: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'lines-'))
    file = join(root, 't.jsonl')
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  const text = framed('msg_7', 'before\u2028after\u2029and\u0085on')

  it('is found in a transcript of Claude Code (C25)', async () => {
    const record = { type: 'user', uuid: 'u1', message: { role: 'user', content: text } }
    writeFileSync(file, `${JSON.stringify(record)}\n`)
    expect([...(await searchTranscript(file, new Set(['msg_7'])))]).toEqual([['msg_7', 'u1']])
  })

  it('is found in a transcript of Gemini (C25)', async () => {
    const record = { id: 'x', timestamp: '2026-01-01T00:00:00Z', type: 'user', content: [{ text }] }
    writeFileSync(file, `${JSON.stringify(record)}\n`)
    expect([...(await searchGemini(file, new Set(['msg_7'])))]).toEqual([['msg_7', 'x']])
  })

  it('stays in its line, and a last line without a newline counts', async () => {
    writeFileSync(file, `one\u2028more\n\ntwo\r\nthree`)
    expect(await all(linesOf(file))).toEqual(['one\u2028more', '', 'two\r', 'three'])
    expect(await all(linesOf(join(root, 'none')))).toEqual([])
  })
})

describe('the part of a turn that fits', () => {
  const answers = '[ORCHESTRATOR RESPONSE]\nok'
  const texts = [framed('msg_2', 'é'.repeat(40)), framed('msg_12', 'b'.repeat(80)), framed('msg_3')]
  const turn = { text: [answers, ...texts].join('\n\n'), ids: ['msg_2', 'msg_12', 'msg_3'] }
  const bytesOf = (...parts: string[]) => Buffer.byteLength(parts.join('\n\n'))

  it.each([
    ['all of it', bytesOf(turn.text), 3],
    ['its first messages, with the answers before them', bytesOf(turn.text) - 1, 2],
    ['no part of a message', bytesOf(answers, texts[0]!, texts[1]!) - 1, 1],
  ])('is %s', (_, bytes, count) => {
    const text = [answers, ...texts.slice(0, count)].join('\n\n')
    expect(leadingPart(turn, bytes)).toEqual({ text, ids: turn.ids.slice(0, count) })
  })

  it('is nothing if the first message does not fit', () => {
    expect(leadingPart(turn, bytesOf(answers, texts[0]!) - 1)).toBeUndefined()
  })

  it('does not omit the text after the last message', () => {
    const text = `${framed('msg_1')}\n\n${answers}`
    expect(leadingPart({ text, ids: ['msg_1'] }, bytesOf(text) - 1)).toBeUndefined()
  })
})
