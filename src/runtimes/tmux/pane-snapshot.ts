/** One look at a pane: all the guard wants to know, in one round trip. */
import type { PasteManner, Screen } from '../../programs/program.ts'
import type { PaneFacts } from '../paste-guard.ts'
import type { PasteSite } from './paste-target.ts'
import { captureScreen, readScreen } from './screen.ts'

export interface Look {
  readonly facts: PaneFacts
  readonly screen: Screen
  /** People's clients, wherever they look. */
  readonly persons: number
  /** All clients of our session, ours too; changes when someone comes or goes. */
  readonly attached: string
}

const PANE =
  '#{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_input_off} #{cursor_x} #{cursor_y} #{window_id} #{session_attached}'
const CLIENT = '#{client_control_mode} #{window_id} #{client_activity}'
/** tmux tells the time of a key press in whole seconds. */
const ACTIVITY_RESOLUTION_MS = 1000

export async function lookAt(
  site: Pick<PasteSite, 'server' | 'clock' | 'pane' | 'takenBy' | 'typedAt'>,
  manner: Pick<PasteManner, 'state' | 'inputBox' | 'isPlain' | 'isBracketed'>,
): Promise<Look> {
  const { server, clock, pane } = site
  const [status, clients, joined, rows] = await server.run(
    ['display-message', '-p', '-t', pane, PANE],
    ['list-clients', '-F', CLIENT],
    ...captureScreen(pane, manner.isPlain),
  )
  const [dead, mode, synchronized, inputOff, x, y, window, attached] = status!.lines[0]!.split(' ')
  const persons = clients!.lines.map((line) => line.split(' ')).filter(([isControl]) => isControl !== '1')
  const screen = readScreen(joined!, rows!, { x: Number(x), y: Number(y) })
  const quiet = persons
    .filter(([, shown]) => shown === window)
    .map(([, , activeAt]) => clock.now() - Number(activeAt) * 1000 - ACTIVITY_RESOLUTION_MS)
  if (site.typedAt !== undefined) quiet.push(clock.now() - site.typedAt)
  return {
    screen,
    persons: persons.length,
    attached: attached!,
    facts: {
      state: manner.state(),
      inputBox: manner.inputBox(screen),
      isDead: dead === '1',
      isInMode: mode !== '0',
      isSynchronized: synchronized === '1',
      isInputOff: inputOff === '1',
      isBracketed: manner.isBracketed?.() ?? true,
      // Last of all: what they type from now on comes after what is written upon this look.
      takenBy: site.takenBy,
      personQuietMs: quiet.length === 0 ? undefined : Math.max(0, Math.min(...quiet)),
    },
  }
}
