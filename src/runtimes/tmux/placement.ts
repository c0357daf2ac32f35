/** Where panes go: so many to a window, tiled, each with its agent's name above it. */
import { IN_SESSION, TmuxRefused } from './connection.ts'
import type { Server } from './server.ts'

export interface PlacedPane {
  readonly pane: string
  readonly window: string
}

/** On our windows; people may have windows of their own in the session. */
const OURS = '@orc_team'
/** Holds the place until the agent is started in it: options are set first, and nothing it prints is missed. */
const PLACEHOLDER = ['sleep', '2000000000']

export async function placePane(server: Server, panesPerWindow: number): Promise<PlacedPane> {
  const windows = await server.run([
    ...['list-windows', '-t', IN_SESSION, '-F', `#{window_id} #{window_panes} #{${OURS}}`],
  ])
  for (const line of windows[0]!.lines) {
    const [window, panes, isOurs] = line.split(' ')
    if (isOurs !== '1' || Number(panes) >= panesPerWindow) continue
    const placed = await splitWindow(server, window!)
    if (placed !== undefined) return placed
  }
  return openWindow(server)
}

async function splitWindow(server: Server, window: string): Promise<PlacedPane | undefined> {
  try {
    const blocks = await server.run(
      ['split-window', '-d', '-t', window, '-P', '-F', '#{pane_id}', ...PLACEHOLDER],
      ['select-layout', '-t', window, 'tiled'],
    )
    return { window, pane: blocks[0]!.lines[0]! }
  } catch (error) {
    // A person made their terminal small: there is no room for one more.
    if (error instanceof TmuxRefused) return undefined
    throw error
  }
}

async function openWindow(server: Server): Promise<PlacedPane> {
  const blocks = await server.run([
    ...['new-window', '-d', '-t', IN_SESSION, '-n', 'agents', '-P', '-F', '#{window_id} #{pane_id}'],
    ...PLACEHOLDER,
  ])
  const [window, pane] = blocks[0]!.lines[0]!.split(' ') as [string, string]
  const set = (name: string, value: string) => ['set-option', '-w', '-t', window, name, value]
  await server.run(
    set(OURS, '1'),
    set('pane-border-status', 'top'),
    // Programs write the pane's own title; the team's names are not theirs to change.
    set('pane-border-format', ' #{@orc_title} '),
    set('automatic-rename', 'off'),
    set('allow-rename', 'off'),
  )
  return { window, pane }
}
