/** Snapshots of a pane: one with everything the guard needs, in one round trip, and one for a browser. */

import type { Clock } from '../../base/clock.ts'
import type { PaneScreen, PasteOptions } from '../../programs/program.ts'
import type { TerminalSnapshot } from '../runtime.ts'
import type { TmuxCommand } from './control.ts'
import type { Block } from './control-reader.ts'
import type { PaneFacts } from './paste-guard.ts'
import type { TmuxServer } from './server.ts'

/** The pane to look at, with facts about people that tmux does not know. */
export interface SnapshotTarget {
  readonly server: TmuxServer
  readonly clock: Clock
  readonly pane: string
  /** The person typing from the control room. */
  takenBy: string | undefined
  /** When that person last typed. */
  typedAt: number | undefined
}

export interface PaneSnapshot {
  readonly facts: PaneFacts
  readonly screen: PaneScreen
  /** Clients of people, in any window. */
  readonly persons: number
  /** All clients of our session including ours; changes when someone attaches or detaches. */
  readonly attached: string
}

const PANE =
  '#{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_input_off} #{cursor_x} #{cursor_y} #{window_id} #{session_attached}'
const CLIENT = '#{client_control_mode} #{window_id} #{client_activity}'
/** tmux reports key presses in whole seconds. */
const ACTIVITY_RESOLUTION_MS = 1000

export async function takeSnapshot(
  target: SnapshotTarget,
  options: Pick<PasteOptions, 'state' | 'inputBox' | 'isPlain' | 'isBracketed'>,
): Promise<PaneSnapshot> {
  const { server, clock, pane } = target
  const [status, clients, joined, rows] = await server.run(
    ['display-message', '-p', '-t', pane, PANE],
    ['list-clients', '-F', CLIENT],
    ...captureScreen(pane, options.isPlain),
  )
  const [dead, mode, synchronized, inputOff, x, y, window, attached] = status!.lines[0]!.split(' ')
  const persons = clients!.lines.map((line) => line.split(' ')).filter(([isControl]) => isControl !== '1')
  const screen = readScreen(joined!, rows!, { x: Number(x), y: Number(y) })
  const quiet = persons
    .filter(([, shown]) => shown === window)
    .map(([, , activeAt]) => clock.now() - Number(activeAt) * 1000 - ACTIVITY_RESOLUTION_MS)
  if (target.typedAt !== undefined) quiet.push(clock.now() - target.typedAt)
  return {
    screen,
    persons: persons.length,
    attached: attached!,
    facts: {
      state: options.state(),
      inputBox: options.inputBox(screen),
      isDead: dead === '1',
      isInMode: mode !== '0',
      isSynchronized: synchronized === '1',
      isInputOff: inputOff === '1',
      isBracketed: options.isBracketed?.() ?? true,
      // Read last: keys typed from now on come after what this snapshot allows to be written.
      takenBy: target.takenBy,
      personQuietMs: quiet.length === 0 ? undefined : Math.max(0, Math.min(...quiet)),
    },
  }
}

/**
 * Captures the pane twice: with soft-wrapped lines joined, and row by row to locate the cursor in the joined
 * lines. Both keep trailing spaces, so that rows add up to lines.
 */
export function captureScreen(pane: string, isPlain = false): TmuxCommand[] {
  return [
    ['capture-pane', '-p', ...(isPlain ? [] : ['-e']), '-J', '-t', pane],
    ['capture-pane', '-p', '-N', '-t', pane],
  ]
}

const SGR = /\u001b\[[0-9;:]*m|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[\u000e\u000f]/g

export function readScreen(joined: Block, rows: Block, cursor: { x: number; y: number }): PaneScreen {
  const plain = joined.lines.map((line) => line.replace(SGR, ''))
  return {
    lines: plain.map((line) => line.trimEnd()),
    styled: joined.lines,
    cursor: cursorInJoined(plain, rows.lines, cursor),
  }
}

/** A line spans as many rows as its text needs. The cursor is before the character at `x`. */
function cursorInJoined(lines: readonly string[], rows: readonly string[], cursor: { x: number; y: number }) {
  let row = 0
  for (const [y, line] of lines.entries()) {
    let text = rows[row] ?? ''
    let before = 0
    while (true) {
      if (row === cursor.y) return { x: before + indexOfColumn(rows[row] ?? '', cursor.x), y }
      if (text.length >= line.length || row + 1 >= rows.length) break
      before = text.length
      row += 1
      text += rows[row]
    }
    row += 1
  }
  return cursor
}

const NO_WIDTH = /^[\p{M}\u200b-\u200f]/u
const TWICE_AS_WIDE =
  /^[\p{Emoji_Presentation}\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u

/**
 * Converts a column to a string index. If tmux counts widths differently, the input box is not recognised,
 * and the paste waits.
 */
function indexOfColumn(text: string, column: number): number {
  let index = 0
  let at = 0
  for (const character of text) {
    if (at >= column && !NO_WIDTH.test(character)) return index
    index += character.length
    if (!NO_WIDTH.test(character)) at += TWICE_AS_WIDE.test(character) ? 2 : 1
  }
  return index + Math.max(0, column - at)
}

const PANE_FORMAT = '#{pane_width} #{pane_height} #{cursor_x} #{cursor_y} #{cursor_flag}'
/** Links and titles: only colours may reach the browser. */
const NOT_COLOURS =
  /\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|\u001b(?!\[[0-9;:]*m)(?:\[[0-9;:?]*[A-Za-ln-z])?/g
/**
 * Control characters a terminal would obey, including C1, each of which starts a sequence by itself. Keeps
 * the escapes of colours and the two that switch line drawing on and off, which tmux writes.
 */
const CONTROLS = /[\u0000-\u000d\u0010-\u001a\u001c-\u001f\u007f-\u009f]/g
const COLOURS = /\u001b\[([0-9;:]*)m/g

/** Renders a pane for a terminal in a browser. */
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
function completeRows(lines: readonly string[]): string[] {
  let colours = ''
  return lines.map((line) => {
    const before = colours
    const text = line.replace(NOT_COLOURS, '').replace(CONTROLS, '')
    for (const [sequence, codes] of text.matchAll(COLOURS)) {
      const isReset = codes === '' || codes === '0' || codes!.startsWith('0;')
      colours = isReset ? (codes === '' || codes === '0' ? '' : sequence) : colours + sequence
    }
    return before + text
  })
}
