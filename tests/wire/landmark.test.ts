import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BLOCK, type FindLandmarks, findLandmarksPlainly } from '../../src/wire/scan/landmark.ts'
import { findLandmarks } from '../../src/wire/scan/landmark-search.ts'

const FRAGMENTS = [
  ...[
    '<orc-command',
    '<ORC-COMMAND ',
    '</orc-command>',
    '</o',
    '<![CDATA[',
    '{"orc_command"',
    '{ \n"ORC_COMMAND"',
    "{'orc_command",
  ],
  ...[
    '{“orc_command”',
    '{',
    '{"type"',
    '"type',
    '"TYPE"',
    '"t',
    '```',
    '~~~',
    '`',
    '~',
    '``',
    '[ORCHESTRATOR',
    '[ORCHUB MESSAGE',
    'c-c',
    'c_C',
    'orc-comm',
    '-',
    '_',
    '[C',
    '[O',
    '[',
    '\n',
    '\n',
    'a',
    '<',
    ' ',
    '"',
  ],
  ...['> ', '1. ', '- ', 'é', '\xff', ' '.repeat(255), ' '.repeat(256), 'x'.repeat(16), 'text '.repeat(20)],
]
const bytes = fc
  .array(fc.constantFrom(...FRAGMENTS), { minLength: 1, maxLength: 60 })
  .map((parts) => Buffer.from(parts.join(''), 'latin1'))

function places(find: FindLandmarks, input: Buffer, from: number, to: number) {
  const { count, places: found, lines } = find(input, from, to)
  return { lines, places: [...found.subarray(0, 2 * count)] }
}

describe('the search for landmarks', () => {
  it('runs in WebAssembly here', () => {
    expect(findLandmarks).not.toBe(findLandmarksPlainly)
  })

  it('finds in WebAssembly what it finds in plain code', () => {
    fc.assert(
      fc.property(bytes, fc.nat(), fc.nat(), (input, one, other) => {
        const from = one % input.length
        const to = from + 1 + (other % (input.length - from))
        expect(places(findLandmarks, input, from, to)).toEqual(places(findLandmarksPlainly, input, from, to))
      }),
      { numRuns: 3000 },
    )
  })

  it.each(['```\n', '<orc-command ', '{"orc_command"', '[ORCHESTRATOR ', '<', '{', '`', '\n'])(
    'has room for a block that is full of %j',
    (unit) => {
      const input = Buffer.from(unit.repeat(BLOCK)).subarray(0, BLOCK)
      expect(places(findLandmarks, input, 0, BLOCK)).toEqual(places(findLandmarksPlainly, input, 0, BLOCK))
    },
  )
})
