/** Renders a pane for a terminal in a browser. */
import type { TerminalSnapshot } from '../runtime.ts'
import type { TmuxServer } from './server.ts'

const PANE_FORMAT = '#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag}'
/** Links and titles: only colours may reach the browser. */
const NOT_COLOURS =
  /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b(?!\[[0-9;:]*m)(?:\[[0-9;:?]*[A-Za-ln-z])?/g
/**
 * Control characters a terminal would obey, including C1, each of which starts a sequence by itself. Keeps
 * the escapes of colours and the two that switch line drawing on and off, which tmux writes.
 */
const CONTROLS = /[\u0000-\u000d\u0010-\u001a\u001c-\u001f\u007f-\u009f]/g
const SGR = /\u001b\[([0-9;:]*)m/g

export async function takeTerminalSnapshot(server: TmuxServer, pane: string): Promise<TerminalSnapshot> {
  const [facts, screen] = await server.run(
    ['display-message', '-p', '-t', pane, PANE_FORMAT],
    ['capture-pane', '-p', '-e', '-t', pane],
  )
  const [columns, height, x, y, isShown] = facts!.lines[0]!.split(' ').map(Number) as [
    ...[number, number, number, number, number],
  ]
  return {
    columns,
    rows: completeRows(screen!.lines.slice(0, height)),
    cursor: isShown === 1 ? { x, y } : undefined,
  }
}

/**
 * tmux continues the colours of the previous row; here each row repeats them, so that it can be shown alone.
 */
export function completeRows(lines: readonly string[]): string[] {
  let colours = ''
  return lines.map((line) => {
    const before = colours
    const text = line.replace(NOT_COLOURS, '').replace(CONTROLS, '')
    for (const [sequence, codes] of text.matchAll(SGR)) {
      const isReset = codes === '' || codes === '0' || codes!.startsWith('0;')
      colours = isReset ? (codes === '' || codes === '0' ? '' : sequence) : colours + sequence
    }
    return before + text
  })
}
