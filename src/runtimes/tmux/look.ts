/** One look at a pane: all the guard wants to know, in one round trip. */
import type { PasteManner, Screen } from '../../programs/program.ts'
import type { PaneFacts } from '../guard.ts'
import type { PasteSite, Seen } from './paste-site.ts'
import { captureScreen, readScreen } from './screen.ts'

export interface Look {
  readonly facts: PaneFacts
  readonly screen: Screen
  /** People's clients, wherever they look. */
  readonly persons: number
  /** All clients of our session, ours too; changes when someone comes or goes. */
  readonly attached: string
  /** Of a look that was begun ahead: if it is elsewhere when we paste, the program has shown something since. */
  readonly cursor: string | undefined
}

const PANE =
  '#{pane_dead} #{pane_in_mode} #{pane_synchronized} #{pane_input_off} #{cursor_x} #{cursor_y} #{window_id} #{session_attached}'
const CLIENT = '#{client_control_mode} #{window_id} #{client_activity}'
/** tmux tells the time of a key press in whole seconds. */
const ACTIVITY_RESOLUTION_MS = 1000

/** A look that is older does not count: a disk took its time, and the program may have turned to something else. */
const AHEAD_MS = 10

/** While a message is stored. What is not on the screen is asked when it is used, as with any look. */
export function lookAhead(site: PasteSite, { isPlain }: Pick<PasteManner, 'isPlain'>): void {
  // What was left there is decided upon by a look that is made then.
  if (site.unsent !== undefined || site.enteredAt !== undefined) return
  const seen = askTmux(site, isPlain)
  seen.catch(() => {})
  site.ahead = { at: site.clock.now(), seen }
}

/** The look that was begun for this paste, if it counts. Once. */
export function takeAhead(site: PasteSite): Promise<Seen> | undefined {
  const { ahead } = site
  site.ahead = undefined
  // Of an age below zero nothing is known: the clock was set back.
  return ahead !== undefined && Math.abs(site.clock.now() - ahead.at) <= AHEAD_MS ? ahead.seen : undefined
}

async function askTmux(
  { server, pane }: Pick<PasteSite, 'server' | 'pane'>,
  isPlain: PasteManner['isPlain'],
): Promise<Seen> {
  const [status, clients, joined, rows] = await server.run(
    ['display-message', '-p', '-t', pane, PANE],
    ['list-clients', '-F', CLIENT],
    ...captureScreen(pane, isPlain),
  )
  const [dead, mode, synchronized, inputOff, x, y, window, attached] = status!.lines[0]!.split(' ')
  const persons = clients!.lines.map((line) => line.split(' ')).filter(([isControl]) => isControl !== '1')
  return {
    isDead: dead === '1',
    isInMode: mode !== '0',
    isSynchronized: synchronized === '1',
    isInputOff: inputOff === '1',
    window: window!,
    attached: attached!,
    cursor: `${x}.${y}`,
    persons: persons.map(([, sees, at]) => ({ window: sees!, activeAt: Number(at) * 1000 })),
    screen: readScreen(joined!, rows!, { x: Number(x), y: Number(y) }),
  }
}

export async function lookAt(
  site: Pick<PasteSite, 'server' | 'clock' | 'pane' | 'takenBy' | 'typedAt'>,
  manner: Pick<PasteManner, 'state' | 'inputBox' | 'isPlain' | 'isBracketed'>,
  ahead?: Promise<Seen>,
): Promise<Look> {
  const { clock } = site
  const seen = await (ahead ?? askTmux(site, manner.isPlain))
  const { persons, screen } = seen
  const quiet = persons
    .filter((person) => person.window === seen.window)
    .map(({ activeAt }) => clock.now() - activeAt - ACTIVITY_RESOLUTION_MS)
  if (site.typedAt !== undefined) quiet.push(clock.now() - site.typedAt)
  return {
    screen,
    persons: persons.length,
    attached: seen.attached,
    cursor: ahead === undefined ? undefined : seen.cursor,
    facts: {
      state: manner.state(),
      inputBox: manner.inputBox(screen),
      isDead: seen.isDead,
      isInMode: seen.isInMode,
      isSynchronized: seen.isSynchronized,
      isInputOff: seen.isInputOff,
      isBracketed: manner.isBracketed?.() ?? true,
      // Last of all: what they type from now on comes after what is written upon this look.
      takenBy: site.takenBy,
      personQuietMs: quiet.length === 0 ? undefined : Math.max(0, Math.min(...quiet)),
    },
  }
}
