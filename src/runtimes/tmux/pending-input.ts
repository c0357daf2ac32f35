/** A text of ours that was pasted and not entered: whether it is still ours alone, and its Enter. */
import { randomUUID } from 'node:crypto'
import type { SessionState } from '../../model/agent.ts'
import type { PasteManner, Screen } from '../../programs/program.ts'
import type { Clock } from '../clock.ts'
import { PERSON_QUIET_MS } from '../paste-guard.ts'
import { type Command, ControlLost } from './control.ts'
import { type Look, lookAt } from './pane-snapshot.ts'
import type { Outline, PasteSite, Sent } from './paste-target.ts'
import { commandLine } from './quote.ts'
import type { Server } from './server.ts'

/** Options of the pane. Set with a paste that is entered later, in the same go, and unset when it is known to be taken. */
const UNSENT = '@orc_unsent'
/** Set with its Enter, to a word of its own. A program may swallow an Enter: one that hung takes both in at once. */
const ENTERED = '@orc_entered'
const LAST_LINE_LIMIT = 200
const MOST_PRESSES = 3
/** By Enters that were swallowed: ours, and those of the service before. */
const MOST_LINES_BEGUN = 5

/** A text as it is told again in a box: its last line, and how many lines it has. */
export function outlineOf(text: string): Outline {
  const lines = text.trimEnd().split('\n')
  return { lastLine: oneSpaced(lines.at(-1)!).slice(-LAST_LINE_LIMIT), lines: lines.length }
}

/** As on a screen, where tabs are spaces. */
const oneSpaced = (text: string) => text.replace(/\s+/g, ' ').trim()

export function markUnsent(pane: string, { lines, lastLine }: Outline): Command[] {
  return [
    ['set-option', '-p', '-t', pane, UNSENT, `${lines} ${lastLine}`],
    ['set-option', '-p', '-u', '-t', pane, ENTERED],
  ]
}

export interface LeftInput {
  readonly unsent: Sent
  /** Its Enter was pressed, and nobody knows whether it was taken. */
  readonly isEntered: boolean
  readonly isInputOff: boolean
}

/**
 * What an earlier service pasted, and did not enter or did not see taken. While the input was off nobody could add to
 * that, and it stays off until it is entered, over any number of services that are killed; if it was on, someone may
 * have. Without such a text, a keyboard that was held off is given back.
 */
export async function takeUpInput(
  server: Server,
  clock: Clock,
  pane: string,
): Promise<LeftInput | undefined> {
  const [said] = await server.run([
    ...['display-message', '-p', '-t', pane, `#{pane_input_off} #{?${ENTERED},1,0} #{${UNSENT}}`],
  ])
  const [, off, entered, lines, lastLine] = /^(\d) (\d) (\d+) (.*)$/.exec(said!.lines[0] ?? '') ?? []
  const isEntered = entered === '1'
  const isInputOff = off === '1' && !isEntered
  if (lastLine === undefined || isEntered) await server.run(['select-pane', '-e', '-t', pane])
  if (lastLine === undefined) return undefined
  const writtenAt = isInputOff ? clock.now() : Number.NEGATIVE_INFINITY
  return { unsent: { lastLine, lines: Number(lines), writtenAt }, isEntered, isInputOff }
}

/** Presses Enter under what was left. Whatever else stands there is not ours to send. */
export async function enterUnsent(
  site: PasteSite,
  manner: Pick<PasteManner, 'state' | 'inputBox' | 'lagMs'>,
): Promise<boolean> {
  if (isTakingEarlier(site, manner.state(), manner.lagMs ?? 0)) return true
  return site.unsent !== undefined && enterIfUnsent(site, await lookAt(site, manner))
}

/** Those messages are in the conversation: what stands in the box from now on is not ours. */
export function noteTaken(site: PasteSite, ids: readonly string[]): void {
  const lastLine = site.unsent?.lastLine
  if (lastLine !== undefined && ids.some((id) => lastLine.includes(` ${id}]`))) void forgetUnsent(site)
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
  const { unsent } = site
  if (unsent === undefined) return false
  const { facts } = look
  if (facts.state === 'idle' && facts.inputBox === 'empty') {
    await forgetUnsent(site)
    return false
  }
  if (!isOursUnsent(site, look, unsent)) return false
  // An Enter that waits to be read is enough: several at once might be swallowed together, or reach a dialog.
  if (unsent.presses !== undefined && !(await site.hasReadInput())) return true
  if (site.unsent !== unsent || (await pressEnter(site)) !== 'pressed') return false
  const presses = (unsent.presses ?? 0) + 1
  // Once more if it is swallowed; but from here on a person may type.
  if (site.unsent === unsent)
    site.unsent =
      presses < MOST_PRESSES ? { ...unsent, presses, writtenAt: Number.NEGATIVE_INFINITY } : undefined
  site.enteredAt = site.clock.now()
  return true
}

/** How programs show a long paste in short: by the number of its lines, or of those after the first. */
const FOLDED = /^[\s│┃|>❯]*\[Pasted text[^\]]*?(\d+) lines\]$/iu
/** The frame that some programs draw around their input box. */
const FRAME_AT_END = /[\s│┃|]+$/u

/** What stands there may by now be a person's draft: Enter would send what they did not. */
export function isOursUnsent(site: PasteSite, look: Look, { lastLine, lines, writtenAt }: Sent): boolean {
  const { facts, screen, persons } = look
  if (facts.state !== 'idle' || facts.isDead || facts.isInMode || facts.inputBox === 'empty') return false
  if (facts.takenBy !== undefined) return false
  // A key that was pressed just now may not be on the screen yet.
  if (!facts.isInputOff && (facts.personQuietMs ?? PERSON_QUIET_MS) < PERSON_QUIET_MS) return false
  const before = lastWords(screen, facts.inputBox === 'draft' ? MOST_LINES_BEGUN : 0)
  if (before !== '' && lastLine !== '' && before.endsWith(lastLine)) return true
  const [, folded] = (persons === 0 && FOLDED.exec(before)) || []
  if (folded !== undefined && [lines, lines - 1].includes(Number(folded))) return true
  // Anything else is ours as long as nobody could type, or nobody came near.
  const personAt = Math.max(site.server.personSeenAt, site.typedAt ?? Number.NEGATIVE_INFINITY)
  const isAlone = facts.isInputOff || (persons === 0 && personAt < writtenAt)
  return facts.inputBox === 'draft' && isAlone
}

/** The line that ends at the cursor, if nothing is behind it. An Enter that was swallowed may have begun another line. */
function lastWords({ lines, cursor }: Screen, linesAbove: number): string {
  const line = lines[cursor.y] ?? ''
  if (line.slice(cursor.x).replace(FRAME_AT_END, '') !== '') return ''
  const above = lines.slice(Math.max(0, cursor.y - linesAbove), cursor.y)
  const written = [...above, line.slice(0, cursor.x)].map((one) => one.replace(FRAME_AT_END, ''))
  return oneSpaced(written.findLast((one) => one !== '') ?? '')
}

type Pressed = 'pressed' | 'dead' | 'in mode'

/** Once: when we are cut off, the mark that goes with the key tells over the next connection whether it was pressed. */
export async function pressEnter(site: PasteSite): Promise<Pressed> {
  const word = randomUUID()
  try {
    return await pressNow(site, word)
  } catch (error) {
    if (!(error instanceof ControlLost)) throw error
    const { server, pane } = site
    const [entered] = await server.run(['display-message', '-p', '-t', pane, `#{${ENTERED}}`])
    return entered!.lines[0] === word ? 'pressed' : await pressNow(site, word)
  }
}

/** In copy mode tmux would eat the key, so it looks in the same go. */
async function pressNow({ server, pane }: PasteSite, word: string): Promise<Pressed> {
  const blocks = await server.run([
    ...['if-shell', '-F', '-t', pane, '#{==:#{pane_dead}#{pane_in_mode},00}'],
    commandLine([
      ['select-pane', '-e', '-t', pane],
      ['send-keys', '-t', pane, 'Enter'],
      ['set-option', '-p', '-t', pane, ENTERED, word],
      ['display-message', '-p', 'pressed'],
    ]),
    commandLine([['display-message', '-p', '-t', pane, '#{?pane_dead,dead,in mode}']]),
  ])
  const said = blocks.at(-1)!.lines[0]
  return said === 'pressed' || said === 'dead' ? said : 'in mode'
}

/** People may type again. What was left is ours as long as nobody comes near. */
export async function giveBackInput(site: PasteSite): Promise<void> {
  // Once entered, the keyboard is back already, and who came since may have typed.
  if (site.unsent === undefined || site.unsent.presses !== undefined) return
  await leaveUnsent(site, { ...site.unsent, writtenAt: site.clock.now() })
}

/** It is entered later, should it stand there and be ours alone; nobody is left with a dead keyboard meanwhile. */
export async function leaveUnsent(site: PasteSite, sent: Sent): Promise<void> {
  site.unsent = sent
  await site.server.run(['select-pane', '-e', '-t', site.pane]).catch(() => {})
}

/** From here on a person may type, and what stands in the box is no longer ours alone. */
export async function releaseInput(site: PasteSite): Promise<void> {
  const { server, pane } = site
  await server.run(['select-pane', '-e', '-t', pane]).catch(() => {})
}

/** It is in the conversation, or out of the box: what stands there from now on is not ours. */
export async function forgetUnsent(site: PasteSite): Promise<void> {
  const { server, pane } = site
  site.unsent = undefined
  const forget: Command[] = [
    ['set-option', '-p', '-u', '-t', pane, UNSENT],
    ['set-option', '-p', '-u', '-t', pane, ENTERED],
    ['select-pane', '-e', '-t', pane],
  ]
  await server.run(...forget).catch(() => {})
}
