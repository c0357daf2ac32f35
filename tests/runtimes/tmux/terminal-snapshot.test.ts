import { describe, expect, it } from 'vitest'
import { takeTerminalSnapshot } from '../../../src/runtimes/tmux/pane-snapshot.ts'
import type { TmuxServer } from '../../../src/runtimes/tmux/server.ts'

async function rowsOf(lines: string[]) {
  const blocks = [
    { lines: ['80 24 0 0 1'], isError: false },
    { lines, isError: false },
  ]
  const server = { run: async () => blocks } as Partial<TmuxServer> as TmuxServer
  return (await takeTerminalSnapshot(server, '%1')).rows
}

describe('a terminal snapshot', () => {
  it('repeats the active colours at the start of each row', async () => {
    const rows = await rowsOf([
      '\u001b[1m\u001b[31mred',
      'still red\u001b[0m plain',
      'plain',
      '\u001b[0;32mgreen',
      'on',
    ])
    expect(rows).toEqual([
      '\u001b[1m\u001b[31mred',
      '\u001b[1m\u001b[31mstill red\u001b[0m plain',
      'plain',
      '\u001b[0;32mgreen',
      '\u001b[0;32mon',
    ])
  })

  it('contains colours only: no links, titles or cursor movements', async () => {
    const [row] = await rowsOf([
      '\u001b]8;;http://evil\u0007click\u001b]8;;\u0007\u001b[2J\u001b[10;10Hx\u001bcy\u001b[31mz',
    ])
    expect(row).toBe('clickxcy\u001b[31mz')
    // C1 controls are one-character sequences; tabs and bells move the cursor or ring.
    expect(await rowsOf(['a\u009b2Jb\u009d0;t\u009cc\u0007\b\rd\u007f'])).toEqual(['a2Jb0;tcd'])
    expect(await rowsOf(['\u000eqqq\u000f'])).toEqual(['\u000eqqq\u000f'])
  })
})
