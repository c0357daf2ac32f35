/** A text of ours that was pasted and not entered: whether it is still ours alone, and its Enter. */
import type { SessionState } from '../../model/agent.ts'
import type { PasteManner } from '../../programs/program.ts'
import type { Clock } from '../clock.ts'
import { PERSON_QUIET_MS } from '../guard.ts'
import { type Command, ControlLost } from './control.ts'
import { type Look, lookAt } from './look.ts'
import type { PasteSite, Sent } from './paste-site.ts'
import { commandLine } from './quote.ts'
import type { Server } from './server.ts'

/** An option of the pane: set with a paste that is entered later, in the same go, and unset with its Enter. */
const UNSENT = '@orc_unsent'
const LAST_LINE_LIMIT = 200

/** As it is looked for on a screen, where tabs are spaces. */
export function lastLineOf(text: string): string {
  return oneSpaced(text.trimEnd().split('\n').at(-1)!).slice(-LAST_LINE_LIMIT)
}

const oneSpaced = (text: string) => text.replace(/\s+/g, ' ').trim()

export function markUnsent(pane: string, lastLine: string): Command {
  return ['set-option', '-p', '-t', pane, UNSENT, lastLine]
}

/**
 * What an earlier service pasted and did not enter. While the input was off nobody could add to that, and it stays off
 * until it is entered, over any number of services that are killed; if it was on, someone may have. Without such a
 * text, a keyboard that was held off is given back.
 */
export async function takeUpInput(server: Server, clock: Clock, pane: string): Promise<Sent | undefined> {
  const [said] = await server.run([
    ...['display-message', '-p', '-t', pane, `#{pane_input_off} #{${UNSENT}}`],
  ])
  const [, isOff, lastLine] = /^(\d) ?(.*)$/.exec(said!.lines[0] ?? '') ?? []
  if (lastLine) return { lastLine, writtenAt: isOff === '1' ? clock.now() : Number.NEGATIVE_INFINITY }
  await server.run(['select-pane', '-e', '-t', pane])
  return undefined
}

/** Presses Enter once under what was left. Whatever else stands there is not ours to send. */
export async function enterUnsent(
  site: PasteSite,
  manner: Pick<PasteManner, 'state' | 'inputBox' | 'lagMs'>,
): Promise<boolean> {
  if (isTakingEarlier(site, manner.state(), manner.lagMs ?? 0)) return true
  return site.unsent !== undefined && enterIfUnsent(site, await lookAt(site, manner))
}

/** After an Enter, an empty box and a state of `idle` may be older than the turn that it began. */
export function isTakingEarlier(site: PasteSite, state: SessionState, lagMs: number): boolean {
  if (site.enteredAt === undefined) return false
  if (state === 'idle' && site.clock.now() - site.enteredAt < lagMs) return true
  site.enteredAt = undefined
  return false
}

/** The same, after a look. */
export async function enterIfUnsent(site: PasteSite, look: Look): Promise<boolean> {
  if (site.unsent === undefined) return false
  const { facts } = look
  if (facts.state === 'idle' && facts.inputBox === 'empty') await releaseInput(site)
  if (site.unsent === undefined || !isOursUnsent(site, look, site.unsent)) return false
  if ((await pressEnter(site)) !== 'pressed') return false
  site.unsent = undefined
  site.enteredAt = site.clock.now()
  return true
}

/** The frame that some programs draw around their input box. */
const FRAME_AT_END = /[\s│┃|]+$/u

/** What stands there may by now be a person's draft: Enter would send what they did not. */
export function isOursUnsent(site: PasteSite, look: Look, { lastLine, writtenAt }: Sent): boolean {
  const { facts, screen, persons } = look
  if (facts.state !== 'idle' || facts.isDead || facts.isInMode || facts.inputBox === 'empty') return false
  if (facts.takenBy !== undefined) return false
  // A key that was pressed just now may not be on the screen yet.
  if (!facts.isInputOff && (facts.personQuietMs ?? PERSON_QUIET_MS) < PERSON_QUIET_MS) return false
  const line = screen.lines[screen.cursor.y] ?? ''
  const isAtEnd = line.slice(screen.cursor.x).replace(FRAME_AT_END, '') === ''
  if (isAtEnd && lastLine !== '' && oneSpaced(line.slice(0, screen.cursor.x)).endsWith(lastLine)) return true
  // Programs show a long paste in short. Then it is ours as long as nobody could type, or nobody came near.
  const personAt = Math.max(site.server.personSeenAt, site.typedAt ?? Number.NEGATIVE_INFINITY)
  const isAlone = facts.isInputOff || (persons === 0 && personAt < writtenAt)
  return facts.inputBox === 'draft' && isAlone
}

type Pressed = 'pressed' | 'dead' | 'in mode'

/** Once: when we are cut off, the mark that goes with the key tells over the next connection whether it was pressed. */
export async function pressEnter(site: PasteSite): Promise<Pressed> {
  try {
    return await pressNow(site)
  } catch (error) {
    if (!(error instanceof ControlLost)) throw error
    const { server, pane } = site
    const [mark] = await server.run(['display-message', '-p', '-t', pane, `#{${UNSENT}}`])
    return mark!.lines[0] ? await pressNow(site) : 'pressed'
  }
}

/** In copy mode tmux would eat the key, so it looks in the same go. */
async function pressNow({ server, pane }: PasteSite): Promise<Pressed> {
  const blocks = await server.run([
    ...['if-shell', '-F', '-t', pane, '#{==:#{pane_dead}#{pane_in_mode},00}'],
    commandLine([
      ['select-pane', '-e', '-t', pane],
      ['send-keys', '-t', pane, 'Enter'],
      ['set-option', '-p', '-u', '-t', pane, UNSENT],
      ['display-message', '-p', 'pressed'],
    ]),
    commandLine([['display-message', '-p', '-t', pane, '#{?pane_dead,dead,in mode}']]),
  ])
  const said = blocks.at(-1)!.lines[0]
  return said === 'pressed' || said === 'dead' ? said : 'in mode'
}

/** People may type again. What was left is ours as long as nobody comes near. */
export async function giveBackInput(site: PasteSite): Promise<void> {
  if (site.unsent !== undefined) await leaveUnsent(site, { ...site.unsent, writtenAt: site.clock.now() })
}

/** It is entered later, should it stand there and be ours alone; nobody is left with a dead keyboard meanwhile. */
export async function leaveUnsent(site: PasteSite, sent: Sent): Promise<void> {
  site.unsent = sent
  await site.server.run(['select-pane', '-e', '-t', site.pane]).catch(() => {})
}

/** From here on a person may type, and what stands in the box is no longer ours alone. */
export async function releaseInput(site: PasteSite): Promise<void> {
  const { server, pane } = site
  site.unsent = undefined
  const release: Command[] = [
    ['set-option', '-p', '-u', '-t', pane, UNSENT],
    ['select-pane', '-e', '-t', pane],
  ]
  await server.run(...release).catch(() => {})
}
