import { describe, expect, it } from 'vitest'
import { heardCommands } from '../../src/delivery/listener.ts'
import { createRegistry } from '../../src/protocol/registry.ts'
import { createScanner, scanText } from '../../src/protocol/scanner.ts'

const known = heardCommands(createRegistry())
const scan = (text: string) => scanText(text, known)
const briefly = (text: string) =>
  scan(text).map((found) => (found.ok ? [found.type, found.fields] : found.code))

const REPORT = `{
  "type": "REPORT",
  "from": "child_agent_id",
  "to": "parent_agent_id",
  "result": "Found 3 flight options...",
  "status": "completed",
  "message_id": "uuid",
  "in_response_to": "parent_message_id"
}`
const FIELDS = {
  from: 'child_agent_id',
  to: 'parent_agent_id',
  result: 'Found 3 flight options...',
  status: 'completed',
  message_id: 'uuid',
  in_response_to: 'parent_message_id',
}

describe("a bare JSON message in an agent's text (S2.2)", () => {
  it('is a command without a wrapper', () => {
    const text = `I am done.\n\n${REPORT}\n\nThat is all.`
    const [found] = scan(text)
    expect(found).toMatchObject({ ok: true, type: 'report', fields: FIELDS, notation: 'json', ignored: [] })
    expect(found!.span).toEqual({ offset: 12, end: 12 + REPORT.length, line: 3 })
  })

  it('is the same on one line, indented, and for any chunk boundaries', () => {
    const text = `x\n  ${JSON.stringify(JSON.parse(REPORT))} and more\n`
    expect(briefly(text)).toEqual([['report', FIELDS]])
    for (let cut = 0; cut <= text.length; cut++) {
      const scanner = createScanner(known)
      const found = [...scanner.push(text.slice(0, cut)), ...scanner.push(text.slice(cut)), ...scanner.end()]
      expect(found, `cut at ${cut}`).toEqual(scan(text))
    }
  })

  it('keeps a nested context, and booleans', () => {
    const said = { type: 'DELEGATE', to: 'B', task: 'x', context: { a: { b: [1] } }, requires_response: true }
    expect(briefly(JSON.stringify(said))).toEqual([
      ['delegate', { to: 'B', task: 'x', context: '{"a":{"b":[1]}}', requires_response: 'true' }],
    ])
  })

  it.each([
    ['in lower case', '{"type": "report", "result": "x"}'],
    ['of another type', '{"type": "SEND_MESSAGE", "content": "x"}'],
    ['with its key in capitals', '{"TYPE": "REPORT", "result": "x"}'],
    ['with a longer name', '{"type": "REPORTS", "result": "x"}'],
    ['as a value in other JSON', '{"data": {"type": "QUERY", "question": "x"}}'],
    ['behind other words on its line', 'For example {"type": "QUERY", "question": "x"}'],
    ['with another key first', '{"id": 1, "type": "QUERY", "question": "x"}'],
    ['in a list of types', '["type", "QUERY"]'],
  ])('is text %s, because agents show JSON', (_, text) => {
    expect(briefly(text)).toEqual([])
    const scanner = createScanner(known)
    expect([...text.split('').flatMap((character) => scanner.push(character)), ...scanner.end()]).toEqual([])
  })

  it('does not run in code, in a response or in a repeated message (C4)', () => {
    expect(briefly(`\`\`\`json\n${REPORT}\n\`\`\``)).toEqual(['IN_CODE_BLOCK'])
    expect(briefly(`[ORCHESTRATOR RESPONSE]\n${REPORT}\n[END ORCHESTRATOR RESPONSE]`)).toEqual([
      'IN_RESPONSE_BLOCK',
    ])
    expect(briefly(`[ORCHUB MESSAGE msg_1]\n${REPORT}\n[END ORCHUB MESSAGE msg_1]`)).toEqual(['IN_ECHO'])
  })

  it('is text in the body of another command, and contains no other', () => {
    const outer = `<orc-command name="send_message" to="B">\n${REPORT}\n</orc-command>`
    expect(briefly(outer)).toEqual([['send_message', { to: 'B', content: REPORT }]])
    const inner = '{"orc_command": {"type": "list_agents"}}'
    const holding = `{"type": "QUERY", "question": ${JSON.stringify(inner)}, "x": ${inner}}`
    expect(briefly(holding)).toEqual([['query', { question: inner }]])
  })

  it('is reported when it is broken (S0.23)', () => {
    expect(briefly('{"type": "QUERY", "question": "a" "b"}')).toEqual(['NOT_WELL_FORMED'])
    expect(briefly('{"type": "REPORT", "status": "completed" | "partial"}')).toEqual(['NOT_WELL_FORMED'])
    expect(briefly('{"type": "QUERY", "question": "a"')).toEqual(['MISSING_CLOSE'])
    expect(briefly('{"type": "QUERY", "question": "a", "question": "b"}')).toEqual(['NOT_WELL_FORMED'])
  })
})
