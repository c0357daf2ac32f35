import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPlainText } from '../../../src/programs/any/plain-text.ts'

function read(...pieces: (string | Buffer)[]) {
  const lines: string[] = []
  const text = createPlainText((line) => lines.push(line))
  for (const piece of pieces) text.push(Buffer.from(piece))
  return { lines, line: text.line(), isWhole: text.isWhole(), isBracketed: text.isBracketed() }
}

const SHOWN: [string, string, string[]][] = [
  ['colours', '\u001b[1;31mred\u001b[0m', ['red']],
  ['a title', '\u001b]0;a title\u0007text', ['text']],
  ['a title that ends with a string terminator', '\u001b]2;t\u001b\\text', ['text']],
  ['a device control string', '\u001bPq;1\u001b\\text', ['text']],
  ['a character set', '\u001b(Btext\u001b)0', ['text']],
  ['a progress line', '10%\r20%\r100%', ['100%']],
  ['a line that is shorter than what it replaces', 'working\rok\u001b[K', ['ok']],
  ['a line that is erased', 'secret\r\u001b[2Know', ['now']],
  ['a correction', 'helo\b\blo', ['helo']],
  ['line ends of a terminal', 'one\r\ntwo\r\n', ['one', 'two', '']],
  ['a move to another row', 'top\u001b[5;1Hbottom', ['top', 'bottom']],
  ['a gap', 'a\u001b[3Cb', ['a   b']],
  ['deleted characters', 'abcdef\u001b[5D\u001b[2P', ['adef']],
  ['bells and nulls', 'a\u0007b\u0000c', ['abc']],
  ['tabs', 'a\tb', ['a\tb']],
  ['a sequence that never ends', `\u001b]0;${'x'.repeat(5000)}`, ['x'.repeat(5000 + 2 - 4097)]],
]

describe('terminal output as plain text', () => {
  it.each(SHOWN)('removes or applies %s', (_, bytes, expected) => {
    const { lines, line } = read(bytes)
    expect([...lines, line]).toEqual(expected)
  })

  it('is the same however the bytes are cut', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '\u001b[1;31m',
        '\u001b]0;t\u0007',
        '\r',
        '\n',
        '\u001b[K',
        '\u001b[2J',
        '\b',
        '\u001b[?2004h',
      ),
      fc.constantFrom('ü', '漢', '👩‍👧', 'plain'),
      fc.string({ maxLength: 5 }),
    )
    fc.assert(
      fc.property(fc.array(piece), fc.array(fc.nat(200)), (parts, cuts) => {
        const bytes = Buffer.from(parts.join(''))
        const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
        const pieces = at.slice(1).map((end, index) => bytes.subarray(at[index], end))
        expect(read(...pieces)).toEqual(read(bytes))
      }),
    )
  })

  it('never leaves a control character in a line', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        const { lines, line } = read(Buffer.from(bytes))
        expect([...lines, line].join('')).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f]/)
      }),
    )
  })

  it('knows when it is inside a sequence', () => {
    expect(read('text').isWhole).toBe(true)
    for (const cut of ['\u001b', '\u001b[1', '\u001b]0;t', Buffer.from([0xf0, 0x9f]), Buffer.from([0xc3])]) {
      expect(read('text', cut).isWhole).toBe(false)
    }
    expect(read(Buffer.from([0xf0, 0x9f]), Buffer.from([0x98, 0x80])).isWhole).toBe(true)
  })

  it('knows whether the program accepts bracketed paste', () => {
    expect(read('> ').isBracketed).toBeUndefined()
    expect(read('\u001b[?20', '04h').isBracketed).toBe(true)
    expect(read('\u001b[?25;2004h', '\u001b[?2004l').isBracketed).toBe(false)
    expect(read('\u001b[2004h').isBracketed).toBeUndefined()
  })
})
