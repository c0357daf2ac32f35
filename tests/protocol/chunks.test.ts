import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Scanned } from '../../src/protocol/codec.ts'
import { createScanner } from '../../src/protocol/scanner.ts'
import { brief, CHECK, END, known, LIST, SEND, scan } from './commands.ts'

const FRAGMENTS = [
  ...[
    SEND,
    END,
    CHECK,
    LIST,
    '`'.repeat(40),
    ' '.repeat(300),
    'x'.repeat(300),
    '.'.repeat(1100),
    '\n'.repeat(30),
  ],
  ...'<orc-command>|<orc-command |<ORC-COMMAND NAME="x" |name="send_message" |to="B"'.split('|'),
  ...`title='a > b'|>|/>|</orc-command >|<![CDATA[|]]>|<!-- note -->|<to>B</to>|<content>|</content>|&lt;`.split(
    '|',
  ),
  ...'`|``|```|```js\n|~~~|````|\n|\n\n|\r\n| |\t|    |text|- |> |1. |# '.split('|'),
  ...'{"orc_command": {"type": "list_agents"}}|{"orc_command":|{\n\n "orc_command"\n:|{"type": "x", '.split(
    '|',
  ),
  ...'\n{"type": "REPORT", |\n {\n "type":"QUERY"}|{|}|"|\'|\\'.split('|'),
  ...'[ORCHESTRATOR RESPONSE]|[END ORCHESTRATOR RESPONSE]|[ORCHUB MESSAGE msg_1]'.split('|'),
  ...'[END ORCHUB MESSAGE msg_1]|é|“|”|😀|\0|<|='.split('|'),
]

const text = fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 40 }).map((parts) => parts.join(''))
const bytes = text.map((one) => Buffer.from(one))

function scanInPieces(input: Buffer, sizes: readonly number[]): Scanned[] {
  const scanner = createScanner(known)
  const found: Scanned[] = []
  for (let at = 0, i = 0; at < input.length; i++) {
    const size = sizes[i % sizes.length]!
    found.push(...scanner.push(input.subarray(at, at + size)))
    at += size
  }
  return [...found, ...scanner.end()]
}

describe('a text in chunks (C5)', () => {
  it('gives the same result however it is cut', () => {
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 600 })), {
      minLength: 1,
    })
    fc.assert(
      fc.property(bytes, sizes, (input, cuts) => {
        expect(scanInPieces(input, cuts)).toEqual(scan(input))
      }),
      { numRuns: 3000 },
    )
  })

  it('gives the same result byte by byte', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        expect(scanInPieces(input, [1])).toEqual(scan(input))
      }),
      { numRuns: 1500 },
    )
  })

  it('gives the same result when a string is cut inside a character', () => {
    fc.assert(
      fc.property(text, (input) => {
        const scanner = createScanner(known)
        const found = input.split('').flatMap((half) => scanner.push(half))
        expect([...found, ...scanner.end()]).toEqual(scan(input))
      }),
      { numRuns: 500 },
    )
    const scanner = createScanner(known)
    expect([
      ...scanner.push('\ud83d'),
      ...scanner.push(Buffer.from(LIST)),
      ...scanner.push('\ud83d'),
    ]).toHaveLength(1)
    expect(scanner.end()).toEqual([])
  })

  it('does not mistake a comment for a CDATA section, wherever it is cut', () => {
    const input = Buffer.from(`${SEND}a <!-- b --> c${END} ${SEND}d${END}`)
    for (let cut = 1; cut < input.length; cut++)
      expect(scanInPieces(input, [cut, input.length])).toEqual(scan(input))
  })

  it('returns a command with the chunk that completes it', () => {
    for (const command of [CHECK, `${SEND}a \`b\` c${END}`, '{"orc_command": {"type": "list_agents"}}']) {
      const scanner = createScanner(known)
      const input = Buffer.from(`Text.\n\n${command}`)
      for (const byte of input.subarray(0, -1)) expect(scanner.push(Buffer.of(byte))).toEqual([])
      expect(scanner.push(input.subarray(-1))).toMatchObject([{ ok: true }])
    }
  })

  it('holds a command behind an open backtick until its paragraph ends', () => {
    const scanner = createScanner(known)
    expect(scanner.push(`a \` b ${LIST} c\n`)).toEqual([])
    expect(scanner.push('\n')).toMatchObject([{ ok: true }])
  })
})

describe('a long text in chunks', () => {
  it('gives the same result however it is cut, although the scanner drops most of it', () => {
    const long = fc.constantFrom(
      ...['word '.repeat(4000), 'line\n'.repeat(4000), '` '.repeat(9000), 'x'.repeat(40_000)],
    )
    const parts = fc.array(
      fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...FRAGMENTS) }, { weight: 1, arbitrary: long }),
    )
    const sizes = fc.array(fc.integer({ min: 50, max: 9000 }), { minLength: 1 })
    fc.assert(
      fc.property(parts, sizes, (input, cuts) => {
        const whole = Buffer.from(input.join(''))
        expect(scanInPieces(whole, cuts)).toEqual(scanInPieces(whole, [whole.length + 1]))
      }),
      { numRuns: 200 },
    )
  })
})

describe('any input', () => {
  it('never throws', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (input) => {
        expect(scan(input)).toBeInstanceOf(Array)
      }),
      { numRuns: 1000 },
    )
  })

  it('gives spans inside the input, with the right line and text', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        for (const found of scan(input)) {
          const { offset, end, line } = found.span
          expect(offset).toBeGreaterThanOrEqual(0)
          expect(end).toBeGreaterThanOrEqual(offset)
          expect(end).toBeLessThanOrEqual(input.length)
          expect(line).toBe(input.subarray(0, offset).toString('latin1').split('\n').length)
          if (found.ok) expect(found.raw).toBe(input.toString('utf8', offset, end))
        }
      }),
      { numRuns: 2000 },
    )
  })

  it('gives commands in text order that do not overlap', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        const spans = scan(input).flatMap((found) => (found.ok ? [found.span] : []))
        spans.reduce((last, span) => {
          expect(span.offset).toBeGreaterThanOrEqual(last)
          return span.end
        }, 0)
      }),
      { numRuns: 1000 },
    )
  })

  it('gives no command from a closed fence (S0.14)', () => {
    const line = text.map((one) => one.replaceAll('~', '').replaceAll('\n', ' '))
    fc.assert(
      fc.property(fc.array(line), line, (code, info) => {
        const found = scan(`~~~ ${info}\n${code.join('\n')}\n~~~\n${LIST}`)
        expect(found.filter((one) => one.ok).map(brief)).toEqual([['list_agents', {}]])
      }),
      { numRuns: 1000 },
    )
  })

  it('gives no command from a response block or a repeated message (C4)', () => {
    const inner = text.map((one) => one.replaceAll('[', '('))
    fc.assert(
      fc.property(inner, (content) => {
        const response = `[ORCHESTRATOR RESPONSE]\n${content}\n[END ORCHESTRATOR RESPONSE]\n\n${LIST}`
        const message = `[ORCHUB MESSAGE msg_9]\n${content}\n[END ORCHUB MESSAGE msg_9]\n\n${LIST}`
        for (const block of [response, message]) {
          expect(
            scan(block)
              .filter((one) => one.ok)
              .map(brief),
          ).toEqual([['list_agents', {}]])
        }
      }),
      { numRuns: 1000 },
    )
  })
})
