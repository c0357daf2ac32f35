/** The parts of the tmux runtime that need no tmux, or a shell only. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Block, createControlReader } from '../../../src/runtimes/tmux/control-reader.ts'
import { writeLaunchFile } from '../../../src/runtimes/tmux/launch-file.ts'
import { readScreen } from '../../../src/runtimes/tmux/pane-snapshot.ts'
import { commandLine, quoteForShell, withoutControls } from '../../../src/runtimes/tmux/quoting.ts'
import { readTmuxSavedState } from '../../../src/runtimes/tmux/saved-state.ts'
import { serverEnvironment } from '../../../src/runtimes/tmux/server.ts'

describe('control-mode output of tmux', () => {
  function readAll(lines: string[]) {
    const blocks: Block[] = []
    const told: string[] = []
    const read = createControlReader(
      (block) => blocks.push(block),
      (name, rest) => told.push(`${name}|${rest}`),
    )
    lines.forEach(read)
    return { blocks, told }
  }

  it('consists of blocks and notifications', () => {
    const { blocks, told } = readAll([
      '%begin 1 2 0',
      'of the command that attached us',
      '%end 1 2 0',
      '%window-add @1',
      '%begin 1 3 1',
      'one',
      '%end 1 3 1',
      '%exit',
      '%begin 1 4 1',
      'no such thing',
      '%error 1 4 1',
    ])
    expect(blocks).toEqual([
      { lines: ['one'], isError: false },
      { lines: ['no such thing'], isError: true },
    ])
    expect(told).toEqual(['window-add|@1', 'exit|'])
  })

  it('does not let screen text end its block or forge a notification', () => {
    const screen = [
      '%end 1 4 1',
      '%begin 9 9 1',
      '%exit',
      '%error 1 3 0',
      '%end 1 3 11',
      '%pane-mode-changed %1',
    ]
    const { blocks, told } = readAll(['%begin 1 3 1', ...screen, '%end 1 3 1'])
    expect(blocks).toEqual([{ lines: screen, isError: false }])
    expect(told).toEqual([])
  })
})

const word = fc.string({ unit: 'binary' }).filter((text) => !/[\0\ud800-\udfff]/.test(text))

describe('quoting', () => {
  it('gives a shell exactly the same words', () => {
    fc.assert(
      fc.property(word, (text) => {
        const said = execFileSync('sh', ['-c', `printf %s ${quoteForShell(text)}`], { encoding: 'utf8' })
        expect(said).toBe(text)
      }),
      { numRuns: 10 },
    )
  })

  it('allows no control character in a command line for tmux', () => {
    for (const text of ['a\nkill-server', 'a\r', '\u001b', '\0', 'a\u007f']) {
      expect(() => commandLine([[text]])).toThrow('not an argument')
    }
  })

  it('keeps an argument one argument', () => {
    expect(
      commandLine([
        ['a', "b ; c's"],
        ['d', '', '$x'],
      ]),
    ).toBe(`a 'b ; c'\\''s' ; d '' '$x'`)
  })
})

describe('text for a pane', () => {
  it('has no control characters except newlines and tabs, and is otherwise unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const clean = withoutControls(text)
        expect(clean).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/)
        if (!/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text)) expect(clean).toBe(text)
      }),
    )
  })

  it('keeps its number of lines, whatever the line ending', () => {
    expect(withoutControls('a\r\nb\rc\nd')).toBe('a\nb\nc\nd')
  })
})

describe('the launch file', () => {
  it('is private, deletes itself first, and becomes the program with its environment', async () => {
    const folder = mkdtempSync(join(tmpdir(), "orc it's-"))
    const path = await writeLaunchFile(folder, {
      argv: [
        'sh',
        '-c',
        'printf "%s|" "$PWD" "$A" "$TMUX" "$@"; if test -e "$0"; then echo there; fi',
        `${folder}/launch.sh`,
        "it's",
        '$x',
      ],
      env: { PATH: process.env.PATH!, A: "two\nlines and a ' and $HOME" },
      cwd: folder,
    })
    expect(statSync(path).mode & 0o777).toBe(0o700)
    const said = execFileSync('sh', [path], { encoding: 'utf8', env: { ...process.env, TMUX: 'x' } })
    expect(said).toBe(`${folder}|two\nlines and a ' and $HOME||it's|$x|`)
    expect(existsSync(path)).toBe(false)
    rmSync(folder, { recursive: true })
  })

  const shells = ['sh', 'bash'].filter((shell) => existsSync(`/bin/${shell}`))

  /** The environment of the process that the shell executes from the launch file. */
  async function environmentBy(shell: string, env: Record<string, string>, around = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'orc-launch-'))
    const path = await writeLaunchFile(folder, { argv: ['/usr/bin/env', '-0'], env, cwd: folder })
    const options = { encoding: 'utf8', env: { PATH: '/usr/bin:/bin', ...around } } as const
    const said = execFileSync(shell, shell === 'bash' ? ['--posix', path] : [path], options)
    rmSync(folder, { recursive: true })
    return Object.fromEntries(said.split('\0').map((line) => line.split(/=(.*)/s).slice(0, 2)))
  }

  it.each(shells)('hands on every value as it is (%s)', async (shell) => {
    const name = fc.stringMatching(/^V[A-Za-z0-9_]{0,10}$/)
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, word, { maxKeys: 30 }), async (env) => {
        expect(await environmentBy(shell, env)).toMatchObject(env)
      }),
      { numRuns: 10 },
    )
  })

  it.each(shells)('hands on what no shell would let it set (%s)', async (shell) => {
    const env = { UID: '1000', EUID: '1000', PPID: '1', OPTIND: 'x', IFS: 'a', CDPATH: '/usr', A: 'a' }
    expect(await environmentBy(shell, env)).toMatchObject(env)
  })

  it('removes variables the server was started with earlier', async () => {
    const around = { HTTPS_PROXY: 'old', TMPDIR: '/old', TMUX: 't', TMUX_PANE: '%1', TMUX_TMPDIR: '/t' }
    const found = await environmentBy('sh', { TMPDIR: '/new' }, around)
    expect(found).toMatchObject({ TMPDIR: '/new' })
    for (const name of ['HTTPS_PROXY', 'TMUX', 'TMUX_PANE', 'TMUX_TMPDIR'])
      expect(found).not.toHaveProperty(name)
  })

  it('refuses a variable whose name is a command', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'orc-launch-'))
    const launch = { argv: ['x'], cwd: '/', env: { 'A=1; reboot #': '' } }
    await expect(writeLaunchFile(folder, launch)).rejects.toThrow('variable')
    rmSync(folder, { recursive: true })
  })
})

describe('the environment of the tmux server', () => {
  it('contains variables for a person who opens a window there, and no secrets', () => {
    const own = { PATH: '/bin', HOME: '/h', LC_ALL: 'C', HTTPS_PROXY: 'p', TMUX_TMPDIR: '/t' }
    expect(serverEnvironment({ ...own, MY_SECRET: 's', TMUX: 't', ORC_TOKEN: 'o' })).toEqual({
      ...{ ...own, TERM: 'screen-256color' },
    })
  })
})

describe('saved state', () => {
  it('is ignored without an error if it is not ours', () => {
    for (const value of [undefined, null, 'x', {}, { pane: '%1; kill-server' }]) {
      expect(readTmuxSavedState(value)).toBeUndefined()
    }
  })

  it('may contain only the mark of a launch', () => {
    const launch = { mark: 'm', programName: 'any', program: { run: '1' } }
    expect(readTmuxSavedState({ ...launch, pane: 'nonsense' })).toEqual(launch)
  })
})

describe('a screen', () => {
  const block = (...lines: string[]): Block => ({ lines, isError: false })

  it('has its soft-wrapped lines joined, with the cursor at its position in them', () => {
    const rows = block('short', 'a long lin', 'e that wra', 'ps', '> ')
    const joined = block('short', '\u001b[1ma long line that wraps\u001b[0m', '> ')
    const screen = readScreen(joined, rows, { x: 2, y: 3 })
    expect(screen.lines).toEqual(['short', 'a long line that wraps', '>'])
    expect(screen.cursor).toEqual({ x: 22, y: 1 })
    expect(readScreen(joined, rows, { x: 2, y: 4 }).cursor).toEqual({ x: 2, y: 2 })
  })

  it('counts the cursor in characters, however wide they are', () => {
    const cursorAt = (line: string, x: number) => readScreen(block(line), block(line), { x, y: 0 }).cursor.x
    expect(cursorAt('漢字> ', 6)).toBe(4)
    expect(cursorAt('🤖> ', 4)).toBe(4)
    expect(cursorAt('e\u0301> ', 3)).toBe(4)
    expect(cursorAt('> ', 5)).toBe(5)
  })
})
