import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { appendFile, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { type FilePosition, followLines, type LineFollowerOptions } from '../../src/programs/line-follower.ts'

const endings: (() => void | Promise<void>)[] = []
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end()
})

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'follow-'))
  endings.push(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'lines.jsonl')
}

function follow(file: string, extra: Partial<LineFollowerOptions> = {}) {
  const lines: string[] = []
  const resets: string[] = []
  const warnings: string[] = []
  const follower = followLines({
    file,
    onLine: (line) => void lines.push(line),
    onReset: (reason) => void resets.push(reason),
    log: { warn: (_, text) => void warnings.push(text) },
    ...extra,
  })
  endings.push(() => follower.close())
  return { lines, resets, warnings, ...follower }
}

describe('following a file of lines', () => {
  it('passes on existing and later lines, by file events alone', async () => {
    const file = newFile()
    writeFileSync(file, 'one\ntwo\n')
    const { lines } = follow(file)
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two']))
    appendFileSync(file, 'three\n')
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two', 'three']))
  })

  it('waits for a file in folders that do not exist yet', async () => {
    const file = join(dirname(newFile()), 'a', 'b', 'c', 'lines.jsonl')
    const { lines, position } = follow(file)
    expect(position()).toBeUndefined()
    mkdirSync(dirname(dirname(file)), { recursive: true })
    await new Promise((resolve) => setTimeout(resolve, 30))
    mkdirSync(dirname(file))
    writeFileSync(file, 'late\n')
    await vi.waitFor(() => expect(lines).toEqual(['late']))
  })

  it('waits for the end of a half-written line, and keeps its position before it', async () => {
    const file = newFile()
    writeFileSync(file, 'whole\n{"half":')
    const { lines, settled, position } = follow(file)
    await settled()
    expect(lines).toEqual(['whole'])
    expect(position()?.offset).toBe(6)
    appendFileSync(file, '1}\n')
    await vi.waitFor(() => expect(lines).toEqual(['whole', '{"half":1}']))
  })

  it('continues at a saved position without repeating a line (C25)', async () => {
    const file = newFile()
    writeFileSync(file, 'one\ntwo\nthr')
    const first = follow(file)
    await first.settled()
    const savedState = JSON.parse(JSON.stringify(first.position())) as FilePosition
    await first.close()
    appendFileSync(file, 'ee\nfour\n')
    const second = follow(file, { from: savedState })
    await second.settled()
    expect(second.lines).toEqual(['three', 'four'])
    expect(second.resets).toEqual([])
  })

  it.each([
    ['another file of the same name', 'replaced', (file: string) => writeAnew(file, 'other line 1\nx\n')],
    ['a shorter file', 'truncated', (file: string) => writeFileSync(file, 'x\n')],
    [
      'other content, as long or longer',
      'rewritten',
      (file: string) => writeFileSync(file, 'uno\ndue\ntre\nx\n'),
    ],
  ])('restarts when a saved position points into %s', async (_, reason, change) => {
    const file = newFile()
    writeFileSync(file, 'one\ntwo\n')
    const first = follow(file)
    await first.settled()
    const from = first.position()
    await first.close()
    change(file)
    const second = follow(file, { from })
    await second.settled()
    expect(second.resets).toEqual([reason])
    expect(second.lines.at(-1)).toBe('x')
  })

  it('restarts after a truncation, even if the file has grown past the old position since', async () => {
    const file = newFile()
    writeFileSync(file, 'one\ntwo\n')
    const { lines, resets, settled } = follow(file)
    await settled()
    truncateSync(file)
    appendFileSync(file, 'uno\ndue\ntre\n')
    await settled()
    expect(resets).toEqual(['rewritten'])
    expect(lines).toEqual(['one', 'two', 'uno', 'due', 'tre'])
  })

  it('reads a rotated file to its end before the new one', async () => {
    const file = newFile()
    writeFileSync(file, 'one\n')
    const { lines, resets, settled } = follow(file)
    await settled()
    appendFileSync(file, 'two\n')
    renameSync(file, `${file}.1`)
    writeFileSync(file, 'three\n')
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two', 'three']))
    expect(resets).toEqual(['replaced'])
  })

  it('follows a file that was moved away until another one exists', async () => {
    const file = newFile()
    writeFileSync(file, 'one\n')
    const { lines, resets, settled } = follow(file)
    await settled()
    const moved = join(dirname(file), 'elsewhere', 'moved')
    mkdirSync(dirname(moved))
    renameSync(file, moved)
    appendFileSync(moved, 'two\n')
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two']))
    expect(resets).toEqual([])
  })

  it('follows a file that is deleted and created again, alone or with its folder', async () => {
    const file = join(dirname(newFile()), 'folder', 'lines.jsonl')
    mkdirSync(dirname(file))
    writeFileSync(file, 'one\n')
    const { lines } = follow(file)
    await vi.waitFor(() => expect(lines).toEqual(['one']))
    rmSync(file)
    writeFileSync(file, 'two\n')
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two']))
    rmSync(dirname(file), { recursive: true })
    await new Promise((resolve) => setTimeout(resolve, 30))
    mkdirSync(dirname(file))
    writeFileSync(file, 'three\n')
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two', 'three']))
  })

  it('passes on a line with invalid UTF-8, with replacement characters', async () => {
    const file = newFile()
    writeFileSync(file, Buffer.from([0x61, 0xff, 0xfe, 0x0a, 0x62, 0x0a]))
    const { lines, settled, position } = follow(file)
    await settled()
    expect(lines).toEqual(['a\ufffd\ufffd', 'b'])
    expect(position()?.offset).toBe(6)
  })

  it('skips a line over the limit with a warning, and reads the next', async () => {
    const file = newFile()
    const { lines, warnings, settled } = follow(file, { maxLineBytes: 1000 })
    appendFileSync(file, `a\n${'x'.repeat(900)}`)
    await settled()
    appendFileSync(file, `${'x'.repeat(200_000)}\n${'y'.repeat(1000)}\nz\n`)
    await settled()
    expect(lines).toEqual(['a', 'y'.repeat(1000), 'z'])
    expect(warnings).toEqual(['skipped a line over the size limit'])
  })

  it('reads a line of many megabytes that is written in small pieces', async () => {
    const file = newFile()
    const { lines, settled } = follow(file)
    const writer = await open(file, 'a')
    for (let piece = 0; piece < 200; piece++) await writer.write('m'.repeat(50_000))
    await writer.write('\n')
    await writer.close()
    await settled()
    expect(lines.map((line) => line.length)).toEqual([10_000_000])
  })

  it('passes on a burst of 100,000 lines in order, each once', async () => {
    const file = newFile()
    let seen = 0
    let isInOrder = true
    const { settled } = follow(file, {
      onLine(line) {
        isInOrder &&= line === `{"n":${seen}}`
        seen += 1
      },
    })
    let text = ''
    for (let n = 0; n < 100_000; n++) {
      text += `{"n":${n}}\n`
      if (n % 1000 === 999) {
        await appendFile(file, text)
        text = ''
      }
    }
    await settled()
    expect([seen, isInOrder]).toEqual([100_000, true])
  })

  it('retries a line that was rejected, and keeps its position before it', async () => {
    const file = newFile()
    writeFileSync(file, 'one\ntwo\nthree\n')
    const lines: string[] = []
    let isAway = true
    const { settled, position, warnings } = follow(file, {
      async onLine(line) {
        if (line === 'two' && isAway) throw new Error('the store is away')
        lines.push(line)
      },
    })
    await settled()
    expect([lines, position()?.offset]).toEqual([['one'], 4])
    expect(warnings).toHaveLength(1)
    isAway = false
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two', 'three']), { timeout: 5000 })
  })

  it('passes on a line only when the previous one was processed', async () => {
    const file = newFile()
    writeFileSync(file, 'one\ntwo\n')
    let take = () => {}
    const lines: string[] = []
    const { settled, position } = follow(file, {
      onLine(line) {
        lines.push(line)
        return new Promise((resolve) => {
          take = resolve
        })
      },
    })
    await vi.waitFor(() => expect(lines).toEqual(['one']))
    expect(position()?.offset).toBe(0)
    take()
    await vi.waitFor(() => expect(lines).toEqual(['one', 'two']))
    expect(position()?.offset).toBe(4)
    take()
    await settled()
    expect(position()?.offset).toBe(8)
  })

  it('passes on nothing after it was closed', async () => {
    const file = newFile()
    const { lines, close } = follow(file)
    await close()
    writeFileSync(file, 'one\n')
    await new Promise((resolve) => setTimeout(resolve, 30))
    expect(lines).toEqual([])
  })

  it('passes on each line exactly once, however the bytes are written and wherever it restarts', async () => {
    const piece = fc.record({
      bytes: fc.oneof(
        fc.string({ unit: 'grapheme', maxLength: 30 }).map((text) => Buffer.from(text)),
        fc.constantFrom('\n', 'a\n', '\r\n', '{"x":1}\nb').map((text) => Buffer.from(text)),
        fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
      ),
      next: fc.constantFrom('go on', 'settle', 'restart'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(piece, { maxLength: 25 }), async (pieces) => {
        const file = newFile()
        const lines: string[] = []
        const onLine = (line: string) => void lines.push(line)
        let current = follow(file, { onLine })
        for (const { bytes, next } of pieces) {
          await appendFile(file, bytes)
          if (next !== 'go on') await current.settled()
          if (next !== 'restart') continue
          await current.close()
          current = follow(file, { onLine, from: current.position() })
        }
        await current.settled()
        await current.close()
        const whole = Buffer.concat(pieces.map(({ bytes }) => bytes))
        const expected: string[] = []
        for (
          let start = 0, end = whole.indexOf(10);
          end >= 0;
          start = end + 1, end = whole.indexOf(10, start)
        ) {
          expected.push(whole.toString('utf8', start, end))
        }
        expect(lines).toEqual(expected)
        expect(current.resets).toEqual([])
      }),
      { numRuns: 150 },
    )
  })
})

function writeAnew(file: string, text: string) {
  writeFileSync(`${file}.new`, text)
  renameSync(`${file}.new`, file)
}
