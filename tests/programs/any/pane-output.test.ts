import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  MAX_OPEN_TEXTS,
  positionFile,
  readLogPosition,
  saveLogPosition,
} from '../../../src/programs/any/pane-log.ts'
import { createPaneOutput } from '../../../src/programs/any/pane-output.ts'
import { AnySettings, compilePatterns } from '../../../src/programs/any/patterns.ts'

const { patterns } = AnySettings.parse({ command: 'x', patterns: { idle: '> $' } })

describe('output of a program between its prompts', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'any-output-'))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  function open() {
    const said: string[] = []
    const failures: unknown[] = []
    const settle = new Map<string, { resolve(): void; reject(error: Error): void }>()
    const position = readLogPosition(folder)
    const output = createPaneOutput({
      ...{ folder, path: join(folder, 'pane.log'), run: 'run', patterns: compilePatterns(patterns) },
      port: {
        onText({ text, key }) {
          said.push(`${key} ${text}`)
          return new Promise((resolve, reject) => settle.set(key!, { resolve, reject }))
        },
      },
      ...{ offset: position.offset, begun: position.openTexts.at(-1) ?? position.offset, released: 0 },
      isBracketed: () => false,
      onFailure: (error) => failures.push(error),
    })
    const print = (words: string) => {
      output.push(Buffer.from(`${words}\r\n> `))
      output.cut()
    }
    const after = async (act: () => void) => {
      act()
      await new Promise((resolve) => setImmediate(resolve))
    }
    return { said, failures, settle, output, print, after }
  }

  it('is passed on at once: a later command does not wait for the response to an earlier one', async () => {
    const { said, print, after } = open()
    await after(() => print('one'))
    await after(() => print('two'))
    expect(said).toEqual(['run:0 one\n', 'run:7 two\n'])
  })

  it('saves no position beyond processed text, and where each piece was cut (C25)', async () => {
    const { print, settle, after } = open()
    await after(() => ['one', 'two', 'six'].map(print))
    expect(readLogPosition(folder)).toMatchObject({ offset: 0, openTexts: [7, 14, 21] })
    await after(() => settle.get('run:7')!.resolve())
    expect(readLogPosition(folder)).toMatchObject({ offset: 0, openTexts: [7, 14, 21] })
    await after(() => settle.get('run:0')!.resolve())
    expect(readLogPosition(folder)).toMatchObject({ offset: 14, openTexts: [21] })
  })

  it('is cut at the same offsets when it is repeated, even if that ends early (C25)', async () => {
    saveLogPosition(folder, {
      offset: 0,
      openTexts: [7, 14],
      isBracketed: false,
      released: 0,
    })
    const { said, output, print, settle, after } = open()
    const saved: unknown[] = []
    await after(() => {
      output.repeat(0, 7, Buffer.from('one\r\n> '))
      output.repeat(7, 14, Buffer.from('two\r\n> '))
      Promise.resolve().then(() => saved.push(readLogPosition(folder).openTexts))
    })
    expect(saved).toEqual([[7, 14]])
    await after(() => print('six'))
    expect(said).toEqual(['run:0 one\n', 'run:7 two\n', 'run:14 six\n'])
    await after(() => settle.get('run:0')!.resolve())
    expect(readLogPosition(folder)).toMatchObject({ offset: 7, openTexts: [14, 21] })
  })

  it('waits when too many pieces are open, and continues with the first response', async () => {
    const { said, print, settle, after } = open()
    await after(() => Array.from({ length: MAX_OPEN_TEXTS + 2 }, () => print('one')))
    expect(said).toHaveLength(MAX_OPEN_TEXTS)
    expect(readLogPosition(folder).openTexts).toHaveLength(MAX_OPEN_TEXTS)
    await after(() => settle.get('run:0')!.resolve())
    expect(said).toHaveLength(MAX_OPEN_TEXTS + 1)
  })

  it('is no longer passed on after a failure, and the position stays before it', async () => {
    const { said, failures, print, settle, after } = open()
    await after(() => ['one', 'two'].map(print))
    await after(() => settle.get('run:0')!.reject(new Error('disk full')))
    await after(() => settle.get('run:7')!.resolve())
    await after(() => print('six'))
    expect(failures).toHaveLength(1)
    expect(said).toHaveLength(2)
    expect(readLogPosition(folder)).toMatchObject({ offset: 0, openTexts: [7, 14] })
  })

  it('passes on nothing once it is closed, and still saves positions (C25)', async () => {
    const { print, settle, after, output, said } = open()
    await after(() => Array.from({ length: MAX_OPEN_TEXTS + 2 }, (_, n) => print(`w${n}`)))
    expect(said).toHaveLength(MAX_OPEN_TEXTS)
    const [first] = readLogPosition(folder).openTexts
    output.close()
    await after(() => settle.get('run:0')!.resolve())
    expect(said).toHaveLength(MAX_OPEN_TEXTS)
    expect(readLogPosition(folder)).toMatchObject({ offset: first })
  })

  it('does not touch the position of the next session in the same folder (C25)', async () => {
    const { print, settle, after, output } = open()
    await after(() => print('one'))
    output.close()
    rmSync(positionFile(folder))
    await after(() => settle.get('run:0')!.resolve())
    expect(existsSync(positionFile(folder))).toBe(false)
  })
})
