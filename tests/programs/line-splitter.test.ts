import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type SplitLine, splitLines } from '../../src/programs/line-splitter.ts'

describe('lines', () => {
  it('come out as they went in, however the bytes are cut, and never longer than allowed', async () => {
    const line = fc.string({ unit: 'grapheme', maxLength: 40 }).map((text) => text.replaceAll('\n', ' '))
    const property = fc.asyncProperty(
      fc.array(line),
      fc.array(fc.nat(20)),
      fc.integer({ min: 1, max: 60 }),
      check,
    )
    await fc.assert(property, { numRuns: 300 })
  })
})

async function check(lines: string[], cuts: number[], limit: number) {
  const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(''))
  async function* pieces() {
    let at = 0
    for (const length of cuts) {
      yield bytes.subarray(at, at + length)
      at += length
    }
    yield bytes.subarray(at)
  }
  const read: SplitLine[] = []
  for await (const found of splitLines(pieces(), limit)) read.push(found)
  const isShort = (line: string) => Buffer.byteLength(line) <= limit
  expect(read.map(({ text }) => text)).toEqual(lines.map((line) => (isShort(line) ? line : undefined)))
  for (const [i, { head }] of read.entries())
    expect(Buffer.from(lines[i]!).subarray(0, head.length)).toEqual(head)
}
