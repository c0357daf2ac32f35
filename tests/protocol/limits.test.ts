import { describe, expect, it } from 'vitest'
import { MAX_COMMAND_BYTES, MAX_COMMAND_TEXT } from '../../src/protocol/codec.ts'
import { createScanner } from '../../src/protocol/scanner.ts'
import { briefly, CHECK, END, known, LIST, only, onlyProblem, SEND, scan } from './commands.ts'

const LISTED = ['list_agents', {}]

describe('the size of a command (C20)', () => {
  it.each([
    ['a body', (content: string) => SEND + content + END],
    ['a body with layout around', (content: string) => `${SEND}\n\n  ${content}\n\n${END}`],
    ['an attribute', (content: string) => `<orc-command name="send_message" to="B" content="${content}"/>`],
    [
      'an element',
      (content: string) => `<orc-command type="send_message"><content>${content}</content>${END}`,
    ],
    [
      'a JSON string',
      (content: string) => `{"orc_command": {"type": "send_message", "content": "${content}"}}`,
    ],
  ])('is 102,400 bytes for %s, and not one more', (_, say) => {
    const most = 'x'.repeat(MAX_COMMAND_BYTES)
    expect(only(say(most)).fields.content).toBe(most)
    expect(briefly(`${say(`${most}x`)} ${LIST}`)).toEqual(['TOO_LARGE', LISTED])
  })

  it('counts UTF-8 bytes of the decoded text', () => {
    expect(only(`${SEND}${'&amp;'.repeat(MAX_COMMAND_BYTES)}${END}`).fields.content).toHaveLength(
      MAX_COMMAND_BYTES,
    )
    expect(briefly(`${SEND}${'€'.repeat(MAX_COMMAND_BYTES / 2)}${END}`)).toEqual(['TOO_LARGE'])
    expect(briefly(Buffer.concat([Buffer.from(SEND), Buffer.alloc(90_000, 0xff), Buffer.from(END)]))).toEqual(
      ['TOO_LARGE'],
    )
  })

  it('is reported with the numbers, and nothing is cut', () => {
    const found = onlyProblem(`${SEND}${'x'.repeat(200_000)}${END}`)
    expect(found.message).toBe(
      'The content of send_message is 200,000 bytes long; at most 102,400 are allowed',
    )
    expect(found.span).toMatchObject({ offset: 0, end: SEND.length + 200_000 + END.length })
  })

  it('runs no command quoted in a command over the limit', () => {
    expect(briefly(`${SEND}${'x'.repeat(150_000)}\n${CHECK}\n${'x'.repeat(500_000)}${END}${LIST}`)).toEqual([
      'TOO_LARGE',
      LISTED,
    ])
  })

  it('ends the wait for a closing tag, and the rest is read as text', () => {
    const far = 'x'.repeat(MAX_COMMAND_TEXT)
    expect(briefly(`${SEND}${CHECK}${far}${LIST}${END}`)).toEqual([
      'TOO_LARGE',
      ['mailbox_check', {}],
      LISTED,
    ])
    expect(briefly(`${CHECK}${SEND}${far}${END}`)).toEqual([['mailbox_check', {}], 'TOO_LARGE'])
  })

  it('ends the wait for a quotation mark and for a brace', () => {
    const far = 'x'.repeat(MAX_COMMAND_TEXT)
    expect(briefly(`<orc-command name="send_message" title="a>${LIST.replaceAll('"', "'")}${far}"`)).toEqual([
      'MISMATCHED_QUOTES',
      LISTED,
    ])
    expect(briefly(`{"orc_command": {"type": "${far}${LIST.replaceAll('"', "'")}`)).toEqual([
      'TOO_LARGE',
      LISTED,
    ])
  })

  it('reports commands behind an unclosed one as soon as the limit is passed, not at the end', () => {
    const scanner = createScanner(known)
    expect(scanner.push(`${SEND}${LIST}`)).toEqual([])
    expect(scanner.push('x'.repeat(MAX_COMMAND_TEXT))).toMatchObject([
      { code: 'TOO_LARGE' },
      { type: 'list_agents' },
    ])
  })

  it('bounds the memory for any input', () => {
    const hostile = [
      SEND,
      '<orc-command name="',
      '{"orc_command": {"a": "',
      '`',
      '``` ',
      '[ORCHESTRATOR RESPONSE]\n',
      '` <orc-command ',
    ]
    for (const text of hostile) {
      const scanner = createScanner(known)
      const chunk = Buffer.from(text.repeat(Math.ceil(65_536 / text.length)))
      const before = memoryOf(() => scanner.push(chunk))
      for (let i = 0; i < 100; i++) scanner.push(chunk)
      const after = memoryOf(() => scanner.push(chunk))
      expect([text, (after - before) / 1_048_576 < 8]).toEqual([text, true])
      scanner.end()
    }
  })
})

/** Bytes in array buffers, where the scanner keeps text; a few pushes old ones may not be collected yet. */
function memoryOf(action: () => void): number {
  action()
  global.gc?.()
  return process.memoryUsage().arrayBuffers
}

describe('odd input', () => {
  it('never throws, and hides no command', () => {
    const command = Buffer.from(LIST)
    const odd = [
      [0],
      [0xff, 0xfe],
      [0xc3],
      [0xe2, 0x80],
      [0xf0, 0x9f],
      [0x1b, 0x5b],
      [0xed, 0xa0, 0x80],
      [13],
      [8],
    ]
    for (const bytes of odd) {
      const found = scan(Buffer.concat([Buffer.from(bytes), command, Buffer.from(bytes)]))
      expect(found).toMatchObject([{ type: 'list_agents', span: { offset: bytes.length } }])
    }
  })

  it('keeps control characters, and replaces invalid UTF-8', () => {
    const found = scan(
      Buffer.concat([Buffer.from(`${SEND}a\0\u001bb`), Buffer.from([0xff]), Buffer.from(`c${END}`)]),
    )
    expect(found).toMatchObject([{ fields: { content: 'a\0\u001bb\ufffdc' } }])
  })

  it('counts lines and bytes, not characters (C5)', () => {
    const found = scan(`é\n\r\n😀 ${LIST}\n\n${CHECK}`)
    expect(found).toMatchObject([
      { span: { offset: 10, line: 3 } },
      { span: { offset: 10 + LIST.length + 2, line: 5 } },
    ])
  })

  it('counts lines far into a stream', () => {
    const scanner = createScanner(known)
    const lines = 'one\ntwo `x`\n\nthree\n```\nfour\n```\n'
    for (let i = 0; i < 3000; i++) scanner.push(lines.repeat(10))
    expect(scanner.push(LIST)).toMatchObject([
      { span: { offset: 30_000 * lines.length, line: 30_000 * 7 + 1 } },
    ])
  })

  it('is refused after the end', () => {
    const scanner = createScanner(known)
    scanner.end()
    expect(scanner.end()).toEqual([])
    expect(() => scanner.push('x')).toThrow(/has ended/)
  })
})
