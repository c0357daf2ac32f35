import { describe, expect, it, vi } from 'vitest'
import { createScanner } from '../../src/protocol/scanner.ts'
import { known } from './commands.ts'

/** The number of bytes that the scanner looked at, one by one or in a native search. */
let looks = 0

vi.mock('../../src/protocol/scan/window.ts', async (original) => {
  const { openTextWindow } = await original<typeof import('../../src/protocol/scan/window.ts')>()
  return {
    openTextWindow() {
      const window = openTextWindow()
      return new Proxy(window, {
        get: (target, key) => (key === 'bytes' ? counted(target.bytes) : Reflect.get(target, key)),
      })
    },
  }
})

function counted(bytes: Buffer): Buffer {
  return new Proxy(bytes, {
    get(target, key) {
      const value = Reflect.get(target, key, target)
      if (typeof value !== 'function') {
        if (typeof key === 'string' && /^\d+$/.test(key)) looks++
        return value
      }
      return (...rest: unknown[]) => {
        const result = value.apply(target, rest)
        if (key === 'indexOf') looks += (result < 0 ? target.length : result) - Number(rest[1] ?? 0)
        if (key === 'subarray') looks += result.length
        return result
      }
    },
  })
}

function looksPerByte(text: string, size: number, chunk: number): number {
  const input = Buffer.from(text.repeat(Math.ceil(size / text.length)))
  const scanner = createScanner(known)
  looks = 0
  for (let at = 0; at < input.length; at += chunk) scanner.push(input.subarray(at, at + chunk))
  scanner.end()
  return looks / input.length
}

const growing = (length: number) => Array.from({ length }, (_, i) => '`'.repeat(i + 1)).join(' ')
const shrinking = (length: number) => Array.from({ length }, (_, i) => '`'.repeat(length - i)).join('\n')

describe('the work per byte of hostile text', () => {
  it.each([
    '<orc-command ',
    '<orc-command name="',
    `<orc-command a='<orc-command b="`,
    '<orc-command name="a">',
    '<orc-command name="send_message">text\n\n',
    '<orc-command name="a"></orc-command>',
    '</orc-command>',
    '<orc-command>',
    '<orc-command name="mailbox_check"><orc-command>x</orc-command>',
    '<orc-command name="mailbox_check"><![CDATA[',
    '<orc-command name="mailbox_check"><![CDATA[]]>',
    `<orc-command name="mailbox_check">${'x'.repeat(200)}</orc-command>`,
    '` <orc-command name="a"> ',
    '` `` <orc-command name="a"/>',
    '<orc-command name="a">`</orc-command>',
    '```\n',
    '> - ```\n',
    '``` ',
    '`',
    `${growing(60)} <orc-command name="a"/> `,
    `${shrinking(60)}\n<orc-command name="a"/> `,
    '{"orc_command":',
    '{"orc_command":{"a":[',
    '{"orc_command": {"a": "\n',
    '{ ',
    `{${' '.repeat(2000)}`,
    '[ORCHESTRATOR RESPONSE]\n',
    'x [ORCHUB MESSAGE ',
    '\n',
    ' ',
  ])('does not grow with the text, nor with the number of chunks: %j', (text) => {
    const small = looksPerByte(text, 5000, 4096)
    const large = looksPerByte(text, 30_000, 4096)
    expect(large).toBeLessThan(1.2 * small + 1)
    expect(large).toBeLessThan(10)
    // With each chunk, a waiting scanner looks at its current line again, and at nothing else.
    expect(looksPerByte(text, 5000, 7)).toBeLessThan(100)
  })

  it('does not grow with the depth of nesting', () => {
    const nested = (depth: number) =>
      looksPerByte(
        '<orc-command name="mailbox_check">'.repeat(depth) + '</orc-command>'.repeat(depth),
        1,
        4096,
      )
    expect(nested(2000)).toBeLessThan(1.5 * nested(200))
  })
})
