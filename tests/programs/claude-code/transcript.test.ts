import { appendFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { followTranscript } from '../../../src/programs/claude-code/transcript.ts'
import type { FilePosition } from '../../../src/programs/line-follower.ts'
import type { SessionPort } from '../../../src/runtimes/runtime.ts'

const usage = {
  input_tokens: 1,
  output_tokens: 1,
  cache_read_input_tokens: 0,
  cache_creation_input_tokens: 0,
}
const records = {
  mode: { type: 'mode', mode: 'normal' },
  answer: {
    ...{ type: 'assistant', uuid: 'a1', parentUuid: 'l1', timestamp: '2026-01-01T00:00:01Z' },
    message: { id: 'm1', model: 'claude', content: [{ type: 'text', text: 'done' }], usage },
  },
  prompt: {
    ...{ type: 'user', uuid: 'p1', parentUuid: null },
    message: { content: '[ORCHUB MESSAGE msg_1]\nhello\n[END ORCHUB MESSAGE msg_1]' },
  },
  listing: { type: 'attachment', uuid: 'l1', parentUuid: 'p1', attachment: { type: 'skill_listing' } },
}

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'transcript-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const write = (...lines: object[]) =>
  appendFileSync(join(root, 't.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''))

function follow(from?: FilePosition, carriedOut = Promise.resolve(), model?: string) {
  const heard: string[] = []
  const port = {
    onEvidence: (ids: readonly string[], state: string) => void heard.push(`${ids} ${state}`),
    onText({ text }: { text: string }) {
      heard.push(text)
      return carriedOut
    },
    onUsage: vi.fn(),
  } as unknown as SessionPort
  const transcript = followTranscript({
    ...{ file: join(root, 't.jsonl'), from, since: 0, port, log: { warn: vi.fn() } },
    model: () => model,
    onRecord: vi.fn(),
    isWithdrawn: () => false,
    onWithdrawn: vi.fn(),
    onProgress: vi.fn(),
  })
  return { transcript, heard, onUsage: port.onUsage }
}

/** Reads all that is there, from that position on; resolves with the position to save. */
async function read(...options: Parameters<typeof follow>) {
  const { transcript, heard } = follow(...options)
  await transcript.settled()
  const position = transcript.position()
  await transcript.close()
  return { heard, position }
}

it('reads the file from its beginning again after a restart between the first answer and its prompt', async () => {
  write(records.mode, records.answer)
  const before = await read()
  expect(before.heard).toEqual([])
  write(records.prompt, records.listing)
  const after = await read(before.position)
  expect(after.heard).toEqual(['msg_1 read', 'done'])
  expect((await read(after.position)).heard).toEqual([])
})

it('reads an answer that comes first after a restart in the middle', async () => {
  write(records.mode, records.prompt, records.listing)
  const { position } = await read()
  write(records.answer)
  expect((await read(position)).heard).toEqual(['msg_1 read', 'done'])
})

it('repeats a first answer that was not processed when everything was killed', async () => {
  write(records.answer, records.prompt, records.listing)
  const before = await read(undefined, new Promise(() => {}))
  expect(before.heard).toEqual(['msg_1 read', 'done'])
  expect((await read(before.position)).heard).toContain('done')
})

it.each([
  ['claude-haiku-4-5', 1000, 200_000],
  ['claude-sonnet-4-6', 1000, 200_000],
  ['claude-sonnet-4-6[1m]', 1000, 1_000_000],
  ['claude-opus-4-8', 1000, 1_000_000],
  ['claude-sonnet-5-5', 1000, 1_000_000],
  ['something-new', 1000, 200_000],
  ['something-new', 250_000, 1_000_000],
])('knows the context window of %s with %i tokens seen: %i (C26)', async (named, seen, contextWindow) => {
  const message = {
    ...{ ...records.answer.message, model: named.replace('[1m]', '') },
    usage: { ...usage, input_tokens: seen },
  }
  write(records.prompt, { ...records.answer, message })
  const { transcript, onUsage } = follow(undefined, undefined, named)
  await transcript.settled()
  expect(onUsage).toHaveBeenCalledWith(expect.objectContaining({ contextTokens: seen, contextWindow }))
  await transcript.close()
})
