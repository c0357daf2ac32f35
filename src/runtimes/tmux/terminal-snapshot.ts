/** A pane as people see it, for a terminal in a browser. */
import type { Picture } from '../picture.ts'
import type { Server } from './server.ts'

const FACTS = '#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag}'
/** Links and titles: whatever is not a colour stays out of the browser. */
const NOT_COLOURS =
  /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b(?!\[[0-9;:]*m)(?:\[[0-9;:?]*[A-Za-ln-z])?/g
/**
 * What a terminal would obey, C1 included: each of those begins a sequence by itself. The escapes of colours stay, and
 * the two that switch to line drawing and back, which tmux writes.
 */
const CONTROLS = /[\u0000-\u000d\u0010-\u001a\u001c-\u001f\u007f-\u009f]/g
const SGR = /\u001b\[([0-9;:]*)m/g

export async function takePicture(server: Server, pane: string): Promise<Picture> {
  const [facts, screen] = await server.run(
    ['display-message', '-p', '-t', pane, FACTS],
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

/** tmux goes on with the colours of the row before; here each row says its own, so that one can be shown alone. */
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
