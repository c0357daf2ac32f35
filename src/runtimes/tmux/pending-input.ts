/**
 * Text that we pasted and have not submitted yet: detects whether the input box holds only this text, and presses Enter.
 * States: `none`; `pasted` (in the box, input switched off, Enter due: pasting enters it, Enter leaves it);
 * `left` (Enter could not be pressed, or no evidence followed; people may type again; the next snapshot that
 * shows the text as ours alone presses Enter); `settling` (Enter was pressed, until the program is seen to
 * accept it or its reported state can no longer be older than the Enter). Tmux options of the pane keep the
 * state across restarts of the service. After MAX_ENTER_PRESSES we stop: a program that swallows three
 * Enters needs a person.
 */
import { randomUUID } from 'node:crypto'
import type { SessionState } from '../../base/agent.ts'
import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { PaneScreen, PasteOptions } from '../../programs/program.ts'
import { ControlLost, type TmuxCommand } from './control.ts'
import { type PaneSnapshot, type SnapshotTarget, takeSnapshot } from './pane-snapshot.ts'
import { PERSON_QUIET_MS } from './paste-guard.ts'
import { commandLine } from './quoting.ts'
import type { TmuxServer } from './server.ts'

/** The writing side of one pane. */
export interface PasteTarget extends SnapshotTarget {
  readonly log: Pick<Log, 'warn'>
  /** Resolves on a change that may matter, or after `ms`. */
  waitForChange(ms: number, signal?: AbortSignal): Promise<void>
  /** Creates a buffer file that the tmux server can read. */
  createBuffer(text: string): PasteBuffer
  /** When its input box was last seen empty; undefined before the first time. */
  boxEmptyAt: number | undefined
  /** Whether the program has read everything written to its terminal. */
  hasReadInput(): Promise<boolean>
  /**
   * Text pasted but not submitted, by an earlier service or because the program became busy; or submitted,
   * but not known to be accepted.
   */
  pending: PastedText | undefined
  /**
   * When pending text was submitted, until the program is seen to accept it: its reported state lags behind.
   */
  pendingEnteredAt: number | undefined
  /** Reports why text cannot be written yet; undefined when nothing blocks. */
  setBlocked(reason: string | undefined): void
  /** Stops the watch of a blocked paste. */
  blockedWatch: AbortController | undefined
}

/** Identifies a text in an input box. */
interface TextOutline {
  readonly lastLine: string
  readonly lines: number
}

/** A pasted text. */
export interface PastedText extends TextOutline {
  /** A person who came later may have added to it. */
  readonly writtenAt: number
  /** Number of Enter presses since it became pending. */
  readonly presses?: number
}

export interface PasteBuffer {
  readonly path: string
  /** Name of the tmux buffer, unique to this text. */
  readonly name: string
  readonly outline: TextOutline
  /** Writes the file, once. */
  writeFile(): void
  remove(): void
}

/**
 * `entered`: Enter was pressed. `pasted`: Enter is still to be pressed. `unknown`: the connection broke
 * before tmux answered.
 */
export type WriteResult = 'entered' | 'pasted' | 'unknown'

/**
 * Pane options. Set in the same command line as a paste that is submitted later, and removed once it is known
 * to be accepted.
 */
const PENDING_OPTION = '@orc_unsent'
/**
 * Set together with Enter, to a unique value. A program may swallow an Enter: one that hung reads both at
 * once.
 */
const ENTERED_OPTION = '@orc_entered'
const LAST_LINE_LIMIT = 200
const MAX_ENTER_PRESSES = 3
/** Lines added by swallowed Enters, ours and those of the previous service. */
const MAX_EXTRA_LINES = 5

/** Identifies a text by its last line and its number of lines. */
export function outlineOf(text: string): TextOutline {
  const lines = text.trimEnd().split('\n')
  return { lastLine: collapseSpaces(lines.at(-1)!).slice(-LAST_LINE_LIMIT), lines: lines.length }
}

/** Screens show tabs as spaces. */
const collapseSpaces = (text: string) => text.replace(/\s+/g, ' ').trim()

export function markPending(pane: string, { lines, lastLine }: TextOutline): TmuxCommand[] {
  return [
    ['set-option', '-p', '-t', pane, PENDING_OPTION, `${lines} ${lastLine}`],
    ['set-option', '-p', '-u', '-t', pane, ENTERED_OPTION],
  ]
}

export interface PendingInput {
  readonly text: PastedText
  /** Enter was pressed, but it is unknown whether the program accepted the text. */
  readonly isEntered: boolean
  readonly isInputOff: boolean
}

/**
 * Reads the text that an earlier service pasted but did not submit or did not see accepted. The input stays off until
 * Enter, even if several services are killed in between, and nobody can type while it is off. If it is on, a person may
 * have typed. If there is no such text, switches the input on.
 */
export async function readPendingInput(
  server: TmuxServer,
  clock: Clock,
  pane: string,
): Promise<PendingInput | undefined> {
  const [reply] = await server.run([
    ...[
      'display-message',
      '-p',
      '-t',
      pane,
      `#{pane_input_off} #{?${ENTERED_OPTION},1,0} #{${PENDING_OPTION}}`,
    ],
  ])
  const [, off, entered, lines, lastLine] = /^(\d) (\d) (\d+) (.*)$/.exec(reply!.lines[0] ?? '') ?? []
  const isEntered = entered === '1'
  const isInputOff = off === '1' && !isEntered
  if (lastLine === undefined || isEntered) await server.run(['select-pane', '-e', '-t', pane])
  if (lastLine === undefined) return undefined
  const writtenAt = isInputOff ? clock.now() : Number.NEGATIVE_INFINITY
  return { text: { lastLine, lines: Number(lines), writtenAt }, isEntered, isInputOff }
}

/** Presses Enter for our pending text. Other text is not ours to submit. */
export async function submitPending(
  target: PasteTarget,
  options: Pick<PasteOptions, 'state' | 'inputBox' | 'lagMs'>,
): Promise<boolean> {
  if (isEarlierTextSettling(target, options.state(), options.lagMs ?? 0)) return true
  return target.pending !== undefined && submitIfPending(target, await takeSnapshot(target, options))
}

/** These messages are in the conversation, so text in the box from now on is not ours. */
export function noteAccepted(target: PasteTarget, ids: readonly string[]): void {
  const lastLine = target.pending?.lastLine
  if (lastLine !== undefined && ids.some((id) => lastLine.includes(` ${id}]`))) void clearPending(target)
}

/** After Enter, an empty box and an `idle` state may be older than the turn it started. */
export function isEarlierTextSettling(target: PasteTarget, state: SessionState, lagMs: number): boolean {
  if (target.pendingEnteredAt === undefined) return false
  if (state === 'idle' && target.clock.now() - target.pendingEnteredAt < lagMs) return true
  target.pendingEnteredAt = undefined
  return false
}

/** Like `submitPending`, for an existing snapshot. */
export async function submitIfPending(target: PasteTarget, snapshot: PaneSnapshot): Promise<boolean> {
  const { pending: unsent } = target
  if (unsent === undefined) return false
  const { facts } = snapshot
  if (facts.state === 'idle' && facts.inputBox === 'empty') {
    await clearPending(target)
    return false
  }
  if (!isOurPendingText(target, snapshot, unsent)) return false
  // A single unread Enter is enough: several might be swallowed together, or reach a dialog.
  if (unsent.presses !== undefined && !(await target.hasReadInput())) return true
  if (target.pending !== unsent || (await pressEnter(target)) !== 'pressed') return false
  const presses = (unsent.presses ?? 0) + 1
  // Allow another Enter if this one is swallowed; but from here on a person may type.
  if (target.pending === unsent)
    target.pending =
      presses < MAX_ENTER_PRESSES ? { ...unsent, presses, writtenAt: Number.NEGATIVE_INFINITY } : undefined
  target.pendingEnteredAt = target.clock.now()
  return true
}

/** How programs fold a long paste: with its number of lines, or of those after the first. */
const FOLDED = /^[\s│┃|>❯]*\[Pasted text[^\]]*?(\d+) lines\]$/iu
/** Frame that some programs draw around their input box. */
const FRAME_AT_END = /[\s│┃|]+$/u

/** The box may by now hold a person's draft, which Enter would submit. */
export function isOurPendingText(
  target: PasteTarget,
  snapshot: PaneSnapshot,
  { lastLine, lines, writtenAt }: PastedText,
): boolean {
  const { facts, screen, persons } = snapshot
  if (facts.state !== 'idle' || facts.isDead || facts.isInMode || facts.inputBox === 'empty') return false
  if (facts.takenBy !== undefined) return false
  // A key pressed just now may not be on the screen yet.
  if (!facts.isInputOff && (facts.personQuietMs ?? PERSON_QUIET_MS) < PERSON_QUIET_MS) return false
  const before = textBeforeCursor(screen, facts.inputBox === 'draft' ? MAX_EXTRA_LINES : 0)
  if (before !== '' && lastLine !== '' && before.endsWith(lastLine)) return true
  const [, folded] = (persons === 0 && FOLDED.exec(before)) || []
  if (folded !== undefined && [lines, lines - 1].includes(Number(folded))) return true
  // Any other text is ours if nobody could type since the paste.
  const personAt = Math.max(target.server.clientChangedAt, target.typedAt ?? Number.NEGATIVE_INFINITY)
  const isAlone = facts.isInputOff || (persons === 0 && personAt < writtenAt)
  return facts.inputBox === 'draft' && isAlone
}

/**
 * The line that ends at the cursor, if nothing follows it. A swallowed Enter may have started another line.
 */
function textBeforeCursor({ lines, cursor }: PaneScreen, linesAbove: number): string {
  const line = lines[cursor.y] ?? ''
  if (line.slice(cursor.x).replace(FRAME_AT_END, '') !== '') return ''
  const above = lines.slice(Math.max(0, cursor.y - linesAbove), cursor.y)
  const written = [...above, line.slice(0, cursor.x)].map((one) => one.replace(FRAME_AT_END, ''))
  return collapseSpaces(written.findLast((one) => one !== '') ?? '')
}

type EnterResult = 'pressed' | 'dead' | 'in mode'

/**
 * Presses Enter exactly once: if the connection breaks, the pane option set with the key shows over the next
 * one whether it was pressed.
 */
export async function pressEnter(target: PasteTarget): Promise<EnterResult> {
  const pressId = randomUUID()
  try {
    return await pressNow(target, pressId)
  } catch (error) {
    if (!(error instanceof ControlLost)) throw error
    const { server, pane } = target
    const [entered] = await server.run(['display-message', '-p', '-t', pane, `#{${ENTERED_OPTION}}`])
    return entered!.lines[0] === pressId ? 'pressed' : await pressNow(target, pressId)
  }
}

/** tmux would drop the key in copy mode, so it checks in the same command line. */
async function pressNow({ server, pane }: PasteTarget, pressId: string): Promise<EnterResult> {
  const blocks = await server.run([
    ...['if-shell', '-F', '-t', pane, '#{==:#{pane_dead}#{pane_in_mode},00}'],
    commandLine([
      ['select-pane', '-e', '-t', pane],
      ['send-keys', '-t', pane, 'Enter'],
      ['set-option', '-p', '-t', pane, ENTERED_OPTION, pressId],
      ['display-message', '-p', 'pressed'],
    ]),
    commandLine([['display-message', '-p', '-t', pane, '#{?pane_dead,dead,in mode}']]),
  ])
  const reply = blocks.at(-1)!.lines[0]
  return reply === 'pressed' || reply === 'dead' ? reply : 'in mode'
}

/** Lets people type again. The text counts as ours until a person attaches. */
export async function returnKeyboard(target: PasteTarget): Promise<void> {
  // After Enter, the keyboard is already back, and a person may have typed.
  if (target.pending === undefined || target.pending.presses !== undefined) return
  await leavePending(target, { ...target.pending, writtenAt: target.clock.now() })
}

/** Leaves the text for a later Enter, if it is then still ours alone, and switches the input back on. */
export async function leavePending(target: PasteTarget, sent: PastedText): Promise<void> {
  target.pending = sent
  await target.server.run(['select-pane', '-e', '-t', target.pane]).catch(() => {})
}

/** From here on a person may type, and the text in the box may not be ours alone. */
export async function enableInput(target: PasteTarget): Promise<void> {
  const { server, pane } = target
  await server.run(['select-pane', '-e', '-t', pane]).catch(() => {})
}

/** The text was accepted or removed; text in the box from now on is not ours. */
export async function clearPending(target: PasteTarget): Promise<void> {
  const { server, pane } = target
  target.pending = undefined
  const forget: TmuxCommand[] = [
    ['set-option', '-p', '-u', '-t', pane, PENDING_OPTION],
    ['set-option', '-p', '-u', '-t', pane, ENTERED_OPTION],
    ['select-pane', '-e', '-t', pane],
  ]
  await server.run(...forget).catch(() => {})
}
