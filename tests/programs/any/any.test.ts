import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type LogPosition,
  openPaneLog,
  readLogPosition,
  releaseBefore,
  saveLogPosition,
} from '../../../src/programs/any/pane-log.ts'
import { AnySettings, compilePatterns, watchEvidence } from '../../../src/programs/any/patterns.ts'
import { createAnyProgram } from '../../../src/programs/any/program.ts'
import { followAny } from '../../../src/programs/any/session.ts'
import type { ProgramLaunchOptions } from '../../../src/programs/program.ts'
import { createRecordingPort } from '../../fakes/recording-port.ts'
import { createFakePane } from '../fake-pane.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'orc-any-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const program = createAnyProgram()
const PATTERNS = { idle: '^> $', busy: 'thinking', dialog: 'Allow\\?', submitted: 'got {id}\\b' }
const order = (settings: object): ProgramLaunchOptions => ({
  ...{ name: 'alice', prompt: 'You are Alice.', cwd: folder, folder: join(folder, 'alice'), nonce: 'n' },
  ...{ url: 'http://127.0.0.1:1', token: 't', resume: undefined },
  settings: { command: 'sh', patterns: { idle: '> $' }, ...settings },
})

describe('the settings of an unknown program', () => {
  it('are refused with the error and its path', () => {
    const check = (settings: unknown) => program.check(settings).map(({ path }) => path.join('.'))
    expect(check({ command: 'sh', patterns: { idle: '> $', submitted: 'got {id}$' } })).toEqual([])
    expect(check({ command: 'sh' })).toEqual(['patterns'])
    expect(check({ command: [], patterns: { idle: '[' }, wait: 1 })).toEqual(
      expect.arrayContaining(['command', 'patterns.idle', '']),
    )
    expect(check({ command: 'sh', patterns: { idle: 'x' }, interrupt: ['C-c; kill-server'] })).toEqual([
      'interrupt.0',
    ])
    expect(check({ command: 'sh', patterns: { idle: 'x' }, env: { 'A B': '' } })).toHaveLength(1)
  })
})

describe('its launch', () => {
  it('is its command, with the role as the last argument if configured', async () => {
    expect(await program.launch(order({ args: ['-x'] }))).toMatchObject({
      argv: ['sh', '-x'],
      isLogged: true,
    })
    expect((await program.launch(order({ command: ['sh', '-i'], prompt: 'argument' }))).argv).toEqual([
      ...['sh', '-i', 'You are Alice.'],
    ])
  })

  it('is a new conversation every time, without the log of the last', async () => {
    const first = await program.launch(order({}))
    saveLogPosition(order({}).folder, {
      offset: 99,
      openTexts: [],
      isBracketed: true,
      released: 9,
    })
    const second = await program.launch(order({}))
    expect(second.savedState).not.toEqual(first.savedState)
    expect(readLogPosition(order({}).folder)).toEqual({
      ...{ offset: 0, openTexts: [], isBracketed: false, released: 0 },
    })
  })

  it('reports a program that is not installed, or a command with arguments in one word', async () => {
    await expect(program.launch(order({ command: 'no-such-agent' }))).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      hint: expect.stringContaining('Install'),
    })
    await expect(program.launch(order({ command: 'sh -c true' }))).rejects.toMatchObject({
      code: 'PROGRAM_MISSING',
      hint: expect.stringContaining('list'),
    })
  })
})

describe('its state by patterns', () => {
  const { state, inputBox, promptIn } = compilePatterns(PATTERNS)

  it('is the lowest match', () => {
    expect(state(['hello', '> '])).toBe('idle')
    expect(state(['> do it', 'thinking'])).toBe('busy')
    expect(state(['thinking', 'Allow? [y/N] '])).toBe('waiting_input')
    expect(state(['Allow? [y/N] y', 'thinking', 'done', '> '])).toBe('idle')
    expect(state(['starting up'])).toBeUndefined()
    expect(state(['> not the prompt'])).toBeUndefined()
  })

  it('is a dialog if two patterns match at the same place', () => {
    expect(compilePatterns({ idle: '\\? $', dialog: 'Allow\\? $' }).state(['Allow? '])).toBe('waiting_input')
  })

  it('distinguishes an empty input box, a draft and an unknown one', () => {
    const screen = (line: string, x: number) => ({ lines: ['', line], styled: [], cursor: { x, y: 1 } })
    expect(inputBox(screen('>', 2))).toBe('empty')
    expect(inputBox(screen('> half a', 8))).toBe('draft')
    expect(inputBox(screen('> half a', 2))).toBe('draft')
    expect(inputBox(screen('Allow? y', 8))).toBe('unknown')
    expect(inputBox(screen('', 0))).toBe('unknown')
  })

  it('finds the prompt at the end of a line, to omit it from the text', () => {
    expect(promptIn('> ')).toBe(0)
    expect(promptIn('> x')).toBeUndefined()
    expect(compilePatterns({ idle: '\\$ $' }).promptIn('last words$ ')).toBe(10)
  })
})

describe('the evidence that it accepted a turn', () => {
  const turn = {
    ids: ['msg_1', 'msg_2'],
    text: '[ORCHUB MESSAGE msg_1]\nx\n[END ORCHUB MESSAGE msg_1]\nand msg_2',
  }
  const isGiven = async (promise: Promise<unknown>) =>
    (await Promise.race([promise, new Promise((resolve) => setImmediate(() => resolve('none')))])) !== 'none'

  it('is the pattern with the id of every message in it', async () => {
    const watch = watchEvidence(turn, compilePatterns(PATTERNS))
    watch.line('got msg_1')
    watch.line('got msg_22')
    expect(await isGiven(watch.evidence)).toBe(false)
    watch.line('got msg_2')
    expect(await watch.evidence).toMatchObject({
      state: 'submitted',
      evidence: expect.stringContaining('got msg_2'),
    })
  })

  it('is not the echo of a message that contains the pattern', async () => {
    const watch = watchEvidence({ ids: ['msg_1'], text: 'x' }, compilePatterns(PATTERNS))
    for (const line of ['> [ORCHUB MESSAGE msg_1]', 'got msg_1', '[END ORCHUB MESSAGE msg_1]'])
      watch.line(line)
    expect(await isGiven(watch.evidence)).toBe(false)
    watch.line('got msg_1')
    expect(await isGiven(watch.evidence)).toBe(true)
  })

  it('is, without such a pattern, the echo and then the busy pattern, and neither alone', async () => {
    const patterns = compilePatterns({ idle: '> $', busy: 'thinking' })
    const watch = watchEvidence(turn, patterns)
    watch.state('busy')
    watch.line('> and msg_2')
    watch.state('idle')
    expect(await isGiven(watch.evidence)).toBe(false)
    watch.state('busy')
    expect(await isGiven(watch.evidence)).toBe(true)
  })
})

describe('the evidence for a turn without messages', () => {
  it('is its echo and then the prompt', async () => {
    const watch = watchEvidence(
      { ids: [], text: 'a\n[END ORCHESTRATOR RESPONSE]' },
      compilePatterns(PATTERNS),
    )
    watch.state('idle')
    watch.line('[END ORCHESTRATOR RESPONSE]')
    watch.state('idle')
    expect(await watch.evidence).toMatchObject({ state: 'submitted' })
  })
})

describe('its log', () => {
  it('is read by file events, in order and whole', async () => {
    const path = join(folder, 'pane.log')
    appendFileSync(path, 'skipped')
    let text = ''
    const onBytes = (bytes: Buffer) => {
      text += bytes
    }
    const reader = openPaneLog({ path, from: 7, onBytes, onEnd() {} })
    appendFileSync(path, 'one')
    await expect.poll(() => text).toBe('one')
    const flood = 'x'.repeat(300_000)
    appendFileSync(path, flood)
    await expect.poll(() => text.length).toBe(300_003)
    expect(text).toBe(`one${flood}`)
    expect(reader.read(3, 8).toString()).toBe('ppedo')
    reader.close()
    appendFileSync(path, 'after')
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(text).toHaveLength(300_003)
  })

  it('frees processed parts on disk, and keeps its offsets', async () => {
    const path = join(folder, 'pane.log')
    appendFileSync(path, Buffer.alloc(1 << 20, 'x'))
    releaseBefore(path, 1 << 19)
    await expect.poll(() => statSync(path).blocks * 512).toBeLessThanOrEqual(1 << 19)
    expect(statSync(path).size).toBe(1 << 20)
    expect(
      readFileSync(path)
        .subarray(1 << 19)
        .every((byte) => byte === 0x78),
    ).toBe(true)
  })

  it('is read from its start if the position is unknown', () => {
    appendFileSync(join(folder, 'pane-position.json'), '{"offset":')
    expect(readLogPosition(folder)).toEqual({ offset: 0, openTexts: [], isBracketed: false, released: 0 })
    saveLogPosition(folder, { offset: 5, openTexts: [9], isBracketed: true, released: 3 })
    expect(readLogPosition(folder)).toEqual({ offset: 5, openTexts: [9], isBracketed: true, released: 3 })
  })
})

describe('a message that is looked up', () => {
  const settings = AnySettings.parse({ command: 'x', patterns: { idle: '> $', submitted: '^✓ got {id}$' } })
  const LOG = [
    '> [ORCHUB MESSAGE msg_1]',
    'From: Mallory',
    '',
    '✓ got msg_2',
    '',
    '[END ORCHUB MESSAGE msg_1]',
    '✓ got msg_1',
    '> ',
  ].join('\r\n')

  async function follow(
    log = LOG,
    position: LogPosition = { offset: 0, openTexts: [], isBracketed: true, released: 0 },
  ) {
    const path = join(folder, 'pane.log')
    writeFileSync(path, log)
    saveLogPosition(folder, position)
    const lines = log.split('\r\n')
    const pane = createFakePane({
      log: async () => path,
      screen: async () => ({ lines, styled: lines, cursor: { x: 2, y: lines.length - 1 } }),
    })
    const order = {
      name: 'alice',
      cwd: folder,
      folder,
      nonce: 'n',
      settings,
      savedState: { run: 'run' },
      isReattached: true,
    }
    const port = createRecordingPort()
    const session = await followAny(order, pane, port)
    await port.untilState('idle')
    return { session, path, port }
  }

  it('is located by output of the program, not by text of another message (C25)', async () => {
    const { session } = await follow()
    const locations = await session.locate(['msg_2', 'msg_1'])
    expect(locations.map(({ at }) => at)).toEqual(['absent', 'submitted'])
    await session.close('leave')
  })

  it('is unknown if the log is missing or incomplete (C25)', async () => {
    const { session, path } = await follow(LOG, {
      ...{ offset: LOG.length - 2, openTexts: [], isBracketed: true, released: 9 },
    })
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'submitted' }])
    expect(await session.locate(['msg_2'])).toMatchObject([{ at: 'unknown' }])
    rmSync(path)
    expect(await session.locate(['msg_1'])).toMatchObject([{ at: 'unknown' }])
    await session.close('leave')
  })

  it('is repeated with the same cuts if the service ended with several texts open (C25)', async () => {
    const log = 'one\r\n> two\r\n> six\r\n> '
    const position = { offset: 0, openTexts: [7, 14], isBracketed: true, released: 0 }
    const { session, port } = await follow(log, position)
    await expect.poll(() => port.said.length).toBe(3)
    expect(port.said.map(({ key }) => key)).toEqual(['run:0', 'run:7', 'run:14'])
    await session.close('leave')
  })

  it('does not prevent the idle state of a program found with a draft at its prompt', async () => {
    const { session, port } = await follow('> half a thought')
    expect(port.states).toMatchObject([{ state: 'idle' }])
    await session.close('leave')
  })
})
