import { spawn, spawnSync } from 'node:child_process'
import { expect, vi } from 'vitest'
import { CACHE, ENTRY } from './orc.ts'

/** Runs a program in a terminal. */
export const hasTerminals = spawnSync('script', ['--version']).status === 0

/** The real program in its own terminal, into which the test types. */
export function openTerminal(folder: string, command: string) {
  const line = `"${process.execPath}" "${ENTRY}" ${command}`
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: folder,
    env: {
      ...{ PATH: process.env.PATH ?? '', HOME: folder, TERM: 'xterm', NO_COLOR: '1' },
      NODE_COMPILE_CACHE: CACHE,
    },
  })
  let out = ''
  child.stdout.on('data', (data) => (out += data))
  return {
    ended: new Promise<number | null>((resolve) => child.on('close', resolve)),
    out: () => out,
    shows: (wanted: string | RegExp) => vi.waitFor(() => expect(out).toMatch(wanted), 20_000),
    type: (text: string) => child.stdin.write(text),
  }
}
