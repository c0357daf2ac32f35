import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type ClaudeRecord, readRecord } from '../../../src/programs/claude-code/record.ts'
import { messageIdsIn } from '../../../src/programs/message-evidence.ts'

function recordsOf(version: string): ClaudeRecord[] {
  const file = join(import.meta.dirname, 'fixtures', `transcript-${version}.jsonl`)
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line) => readRecord(line) ?? [])
}

const line = (record: object) => readRecord(JSON.stringify(record))

describe.each(['2.1.325', '2.1.197'])('a recorded transcript of Claude Code %s', (version) => {
  const records = recordsOf(version)
  const of = <K extends ClaudeRecord['kind']>(kind: K) =>
    records.filter((record): record is Extract<ClaudeRecord, { kind: K }> => record.kind === kind)

  it('contains the text of the model, without tool calls and results (C4)', () => {
    const texts = of('answer').flatMap(({ texts }) => texts)
    expect(texts).toContain('Running it.')
    expect(texts.some((text) => text.startsWith('REPLY to <<[ORCHUB MESSAGE msg_3]'))).toBe(true)
    expect(texts.some((text) => text.includes('No response requested') || text.includes('API Error'))).toBe(
      false,
    )
  })

  it('shows every prompt with its message ids, including a turn delivered by the Stop hook', () => {
    const ids = of('prompt').flatMap(({ text }) => messageIdsIn(text))
    expect(ids).toEqual(expect.arrayContaining(['msg_2', 'msg_3', 'msg_4']))
    expect(ids.filter((id) => id === 'msg_3')).toHaveLength(1)
    const feedback = of('prompt').find(({ text }) => text.startsWith('Stop hook feedback'))
    expect(feedback).toMatchObject({ canBeWithdrawn: false })
    expect(of('prompt').some(({ text }) => /<command-name>|<local-command|continued from/.test(text))).toBe(
      false,
    )
  })

  it('links tool calls and their results by one id', () => {
    const used = of('answer').flatMap(({ toolUses }) => toolUses)
    const settled = new Set(of('results').flatMap(({ toolUseIds }) => toolUseIds))
    expect(used.length).toBeGreaterThan(0)
    expect(used.every(({ id }) => settled.has(id))).toBe(true)
    expect(used[0]).toMatchObject({ name: 'Bash', input: { description: 'scripted' } })
  })

  it('shows an interrupt, and the tokens of an answer (C26)', () => {
    expect(of('interrupted').length).toBeGreaterThan(0)
    expect(of('answer')[0]!.tokens).toEqual({ input: 10, output: 5, cacheRead: 1000, cacheWrite: 100 })
    expect(of('answer')[0]!.at).toBeGreaterThan(0)
  })
})

describe('a line of a transcript', () => {
  it.each([
    ['no JSON', '{"type":"user"'],
    ['no object', '"type":"user"'],
    ['nothing', ''],
  ])('that is %s is ignored', (_name, text) => {
    expect(readRecord(text)).toBeUndefined()
  })

  it('of a subagent is ignored (C4)', () => {
    const message = { id: 'm', model: 'x', content: [{ type: 'text', text: 'hi' }] }
    expect(line({ type: 'assistant', isSidechain: true, uuid: 'u', message })).toBeUndefined()
  })

  it('with thinking and text contains only the text (C4)', () => {
    const content = [
      { type: 'thinking', thinking: 'secretly' },
      { type: 'text', text: 'aloud' },
    ]
    const message = { id: 'm', model: 'x', content }
    expect(line({ type: 'assistant', uuid: 'u', message })).toMatchObject({
      kind: 'answer',
      texts: ['aloud'],
    })
  })

  it('that summarises the conversation is not evidence of a message', () => {
    const message = { content: 'Summary: [ORCHUB MESSAGE msg_1]' }
    expect(line({ type: 'user', uuid: 'u', isCompactSummary: true, message })).toBeUndefined()
  })

  it('with a prompt that was queued while the model worked shows the prompt', () => {
    const attachment = { type: 'queued_command', prompt: '[ORCHUB MESSAGE msg_1]' }
    expect(line({ type: 'attachment', uuid: 'u', attachment })).toMatchObject({ kind: 'prompt' })
  })

  it.each([
    ['Stop', 'prompt'],
    ['PostToolUse', undefined],
  ])('with the addition of a %s hook shows %s', (hookEvent, kind) => {
    const content = ['[ORCHUB MESSAGE msg_1]']
    const attachment = { type: 'hook_additional_context', hookName: hookEvent, hookEvent, content }
    expect(line({ type: 'attachment', uuid: 'u', attachment })?.kind).toBe(kind)
  })
})
