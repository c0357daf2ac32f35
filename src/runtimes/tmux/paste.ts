/**
 * Delivers a turn into a pane: waits for the guard, pastes, presses Enter and collects evidence. No key of a
 * person may slip in between the snapshot that allowed the paste and the paste itself: tmux repeats its checks
 * in the same command line as the paste, and the keys of attached people are held off.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sleep, within } from '../../base/clock.ts'
import type { InputBox, PasteOptions } from '../../programs/program.ts'
import { cancelledResult, type DeliveryResult, type Turn } from '../runtime.ts'
import { TmuxRefused } from './connection.ts'
import { ControlLost, type TmuxCommand } from './control.ts'
import { type PaneSnapshot, takeSnapshot } from './pane-snapshot.ts'
import { guardPaste } from './paste-guard.ts'
import {
  clearPending,
  enableInput,
  isEarlierTextSettling,
  isOurPendingText,
  leavePending,
  markPending,
  outlineOf,
  type PasteBuffer,
  type PastedText,
  type PasteTarget,
  pressEnter,
  returnKeyboard,
  submitIfPending,
  type WriteResult,
} from './pending-input.ts'
import { commandLine, withoutControls, withoutFormats } from './quoting.ts'

export async function paste(target: PasteTarget, turn: Turn, options: PasteOptions): Promise<DeliveryResult> {
  const buffer = target.createBuffer(withoutControls(turn.text))
  target.blockedWatch?.abort()
  try {
    const written = await writeWhenAllowed(target, buffer, options)
    if (typeof written === 'object') return written
    const sent = { ...buffer.outline, writtenAt: target.clock.now() }
    const problem = written === 'pasted' ? await submitPaste(target, options, sent) : undefined
    if (problem !== undefined) return problem
    const result = await awaitEvidence(target, options, sent)
    // The text may still be there, with the input switched off if the connection to tmux broke.
    if (result.state === 'uncertain') await leavePending(target, sent)
    else if (written !== 'entered') void clearPending(target)
    return result
  } finally {
    buffer.remove()
  }
}

/** A program whose state is read off its screen shows within this time that it accepted the text. */
const SCREEN_LAG_MS = 500
/** A person's last key appears on the screen within this time. */
const SETTLE_MS = 50

interface PasteRefusal {
  readonly reason: string
  readonly isFinal?: true
  readonly againMs?: number
}

/**
 * Writes as soon as the guard allows it. If that does not happen in time, returns `queued` with the reason.
 */
async function writeWhenAllowed(
  target: PasteTarget,
  buffer: PasteBuffer,
  options: PasteOptions,
): Promise<WriteResult | DeliveryResult> {
  const deadline = target.clock.now() + options.patienceMs
  let isInTheWay = false
  try {
    while (true) {
      if (options.signal?.aborted) return cancelledResult(options.signal)
      const attempt = await attemptWrite(target, buffer, options)
      if (typeof attempt === 'string') return attempt
      const left = deadline - target.clock.now()
      isInTheWay = left <= 0 && !attempt.isFinal
      if (attempt.isFinal || isInTheWay)
        return { state: 'queued', evidence: `not written: ${attempt.reason}` }
      target.setBlocked(attempt.reason)
      await target.waitForChange(Math.min(RECHECK_MS, attempt.againMs ?? RECHECK_MS, left), options.signal)
    }
  } finally {
    if (isInTheWay) void watchBlockedPaste(target, options)
    else target.setBlocked(undefined)
  }
}

async function attemptWrite(
  target: PasteTarget,
  buffer: PasteBuffer,
  options: PasteOptions,
): Promise<WriteResult | PasteRefusal> {
  try {
    const snapshotting = takeSnapshot(target, options)
    snapshotting.catch(() => {})
    // Written while tmux takes the snapshot.
    buffer.writeFile()
    const snapshot = await snapshotting
    const refusal = refusalOf(snapshot, options)
    const isTaking = isEarlierTextSettling(target, snapshot.facts.state, options.lagMs ?? SCREEN_LAG_MS)
    if (isTaking || (await submitIfPending(target, snapshot)))
      return { reason: 'it is still accepting the previous text' }
    if (refusal !== undefined) return refusal
    const isDraftPossible = snapshot.persons > 0 || (target.boxEmptyAt ?? -1) <= target.server.clientChangedAt
    const isFirst = target.boxEmptyAt === undefined
    target.boxEmptyAt = target.clock.now()
    if (!isDraftPossible && !isFirst) return await writeIfUnchanged(target, buffer, options, snapshot, 'open')
    return await writeWithInputHeld(target, buffer, options)
  } catch (error) {
    if (error instanceof ControlLost) return { reason: error.message }
    if (error instanceof TmuxRefused) return { reason: error.message, isFinal: true }
    throw error
  }
}

/**
 * A key pressed before the snapshot may not be on the screen yet: hold off further keys, wait, and check
 * again.
 */
async function writeWithInputHeld(
  target: PasteTarget,
  buffer: PasteBuffer,
  options: PasteOptions,
): Promise<WriteResult | PasteRefusal> {
  const { server, clock, pane } = target
  let attempt: WriteResult | PasteRefusal | undefined
  try {
    await server.run(['select-pane', '-d', '-t', pane])
    await sleep(clock, SETTLE_MS)
    const snapshot = await takeSnapshot(target, options)
    const refusal = refusalOf({ ...snapshot, facts: { ...snapshot.facts, isInputOff: false } }, options)
    attempt = refusal ?? (await writeIfUnchanged(target, buffer, options, snapshot, 'held'))
    return attempt
  } finally {
    // Switch the keyboard back on in any case.
    if (attempt !== 'entered' && attempt !== 'pasted') await enableInput(target)
  }
}

function refusalOf({ facts }: PaneSnapshot, { signal }: PasteOptions): PasteRefusal | undefined {
  if (signal?.aborted) return { reason: cancelledResult(signal).evidence, againMs: 0 }
  const decision = guardPaste(facts)
  return decision.write ? undefined : decision
}

const WRITTEN_OPTION = '@orc_written'

/**
 * Asks over the next connection whether the paste happened. The previous connection ends only when tmux has
 * dropped it along with its unprocessed commands, so the result is final.
 */
async function wasWritten(
  { server, pane }: PasteTarget,
  { name }: PasteBuffer,
): Promise<boolean | undefined> {
  try {
    const [trace] = await server.run(['display-message', '-p', '-t', pane, `#{${WRITTEN_OPTION}}`])
    return trace!.lines[0] === name
  } catch {
    return undefined
  }
}

/** tmux drops text pasted while a pane's input is off, so switch it on for exactly that moment. */
async function writeIfUnchanged(
  target: PasteTarget,
  buffer: PasteBuffer,
  options: PasteOptions,
  snapshot: PaneSnapshot,
  input: 'open' | 'held',
): Promise<WriteResult | PasteRefusal> {
  const { server, pane } = target
  const inputOn: TmuxCommand = ['select-pane', '-e', '-t', pane]
  const inputOff: TmuxCommand = ['select-pane', '-d', '-t', pane]
  const pasteIt: TmuxCommand = ['paste-buffer', '-p', '-d', '-b', buffer.name, '-t', pane]
  const isEnterDue = options.enterAfterMs === 0
  const unsent = markPending(pane, buffer.outline)
  const pressed: TmuxCommand[] = isEnterDue ? [['send-keys', '-t', pane, 'Enter']] : [inputOff, ...unsent]
  const before: TmuxCommand[] = input === 'held' ? [inputOn] : []
  const facts = '#{pane_dead}#{pane_in_mode}#{pane_synchronized}#{pane_input_off}/#{session_attached}'
  // Stored in the pane together with the paste, in case the connection breaks before tmux responds.
  const trace: TmuxCommand = ['set-option', '-p', '-t', pane, WRITTEN_OPTION, buffer.name]
  const seen = `000${input === 'held' ? 1 : 0}/${snapshot.attached}`
  let result: string
  try {
    const blocks = await server.run(loadBuffer(buffer), [
      ...['if-shell', '-F', '-t', pane, `#{==:${facts},${seen}}`],
      commandLine([...before, trace, pasteIt, ...pressed, ['display-message', '-p', 'written']]),
      commandLine([
        ['delete-buffer', '-b', buffer.name],
        ['display-message', '-p', 'refused'],
      ]),
    ])
    result = blocks.at(-1)!.lines[0] ?? ''
  } catch (error) {
    if (!(error instanceof ControlLost)) throw error
    const isWritten = await wasWritten(target, buffer)
    if (isWritten === undefined) return 'unknown'
    result = isWritten ? 'written' : 'refused'
  }
  if (result !== 'written') return { reason: 'its pane changed at that moment', againMs: 0 }
  return isEnterDue ? 'entered' : 'pasted'
}

/** Polling interval: no event tells that a person has emptied an input box. */
const RECHECK_MS = 500

/**
 * Runs after a paste timed out and reports when it could be written, so that the engine need not retry and
 * record each attempt. Ends with the next paste, which checks for itself, and with the session.
 */
async function watchBlockedPaste(target: PasteTarget, options: PasteOptions): Promise<void> {
  const watching = new AbortController()
  const { signal } = watching
  target.blockedWatch = watching
  let againMs: number | undefined = RECHECK_MS
  while (againMs !== undefined) {
    await target.waitForChange(againMs, signal)
    if (signal.aborted) return
    againMs = await recheck(target, options).catch((error: unknown) => {
      if (error instanceof ControlLost) return RECHECK_MS
      if (!(error instanceof TmuxRefused))
        target.log.warn({ pane: target.pane, err: error }, 'taking a snapshot failed')
      return undefined
    })
    if (signal.aborted) return
  }
  target.setBlocked(undefined)
}

/** Returns the delay to the next check; undefined if nothing blocks, or nothing will change. */
async function recheck(target: PasteTarget, options: PasteOptions): Promise<number | undefined> {
  // The engine learns by itself when the agent is idle again; other causes matter only then.
  if (options.state() !== 'idle') return RECHECK_MS
  const snapshot = await takeSnapshot(target, options)
  if (isEarlierTextSettling(target, snapshot.facts.state, options.lagMs ?? RECHECK_MS)) return RECHECK_MS
  if (await submitIfPending(target, snapshot)) return RECHECK_MS
  const decision = guardPaste(snapshot.facts)
  if (decision.write || decision.isFinal) return undefined
  target.setBlocked(decision.reason)
  return Math.min(RECHECK_MS, decision.againMs ?? RECHECK_MS)
}

const COPY_MODE_RETRY_MS = 500

/**
 * Presses Enter for programs that need a delay after the paste; the pane's input is off until then. Text that
 * could not be submitted stays pending and is submitted once the program is idle again.
 */
async function submitPaste(
  target: PasteTarget,
  options: PasteOptions,
  sent: PastedText,
): Promise<DeliveryResult | undefined> {
  const { clock } = target
  await sleep(clock, options.enterAfterMs)
  const deadline = clock.now() + options.evidenceMs
  let left: PastedText | undefined = sent
  try {
    while (true) {
      const state = options.state()
      // Enter would now answer a dialog.
      if (state !== 'idle') return enterNotPressed(`it turned ${state}`)
      const found = await pressEnter(target)
      if (found !== 'in mode') left = undefined
      if (found === 'pressed') return undefined
      if (found === 'dead') return enterNotPressed('its process ended')
      if (clock.now() >= deadline) return enterNotPressed('its pane is in copy mode')
      await target.waitForChange(COPY_MODE_RETRY_MS)
    }
  } catch (error) {
    left = undefined
    // Enter may have been pressed; the evidence will tell.
    if (error instanceof ControlLost) return undefined
    if (error instanceof TmuxRefused) return enterNotPressed(error.message)
    throw error
  } finally {
    target.pending = left
    await (left === undefined ? enableInput(target) : returnKeyboard(target))
  }
}

function enterNotPressed(why: string): DeliveryResult {
  return { state: 'uncertain', evidence: `pasted, but Enter was not pressed: ${why}` }
}

/**
 * Waits for the program's evidence. Without it, presses Enter once more if the text is still pending, then
 * reports `uncertain`.
 */
async function awaitEvidence(
  target: PasteTarget,
  options: PasteOptions,
  sent: PastedText,
): Promise<DeliveryResult> {
  const { clock } = target
  const result = await within(clock, options.evidenceMs, options.evidence)
  if (result !== undefined) return result
  let seen: string
  try {
    const snapshot = await takeSnapshot(target, options)
    seen = describeSnapshot(snapshot)
    if (isOurPendingText(target, snapshot, sent) && (await pressEnter(target)) === 'pressed') {
      seen = 'the text was still in the input box, and Enter was pressed once more'
      const second = await within(clock, options.evidenceMs, options.evidence)
      if (second !== undefined) return { ...second, evidence: `${second.evidence}, after a second Enter` }
    }
  } catch (error) {
    if (!(error instanceof ControlLost || error instanceof TmuxRefused)) throw error
    seen = error.message
  }
  return {
    state: 'uncertain',
    evidence: `written, but no evidence within ${options.evidenceMs} ms: ${seen}`,
  }
}

const BOX: Record<InputBox, string> = {
  empty: 'is empty',
  draft: 'holds text',
  unknown: 'cannot be recognised',
}

function describeSnapshot({ facts }: PaneSnapshot): string {
  if (facts.isDead) return 'its process ended'
  return `it is ${facts.state}, its input box ${BOX[facts.inputBox]}`
}

// Text on its way into a pane is a private file that the tmux server loads into a buffer.
const EXTENSION = '.txt'
const BUFFER_FILE = /^orc-\d+-\d+-\d+\.txt$/

export function isBufferFile(name: string): boolean {
  return BUFFER_FILE.test(name)
}

/** The file may have been loaded into a buffer already. */
export function bufferNameOf(file: string): string {
  return file.slice(0, -EXTENSION.length)
}

/** Synchronous: a small file in the page cache, in the path of every message. */
export function createPasteBuffer(folder: string, name: string, text: string): PasteBuffer {
  const path = join(folder, `${name}${EXTENSION}`)
  let isWritten = false
  return {
    path,
    name,
    outline: outlineOf(text),
    writeFile() {
      if (!isWritten) writeFileSync(path, text, { mode: 0o600 })
      isWritten = true
    },
    remove: () => rmSync(path, { force: true }),
  }
}

export function loadBuffer({ name: buffer, path }: PasteBuffer): readonly string[] {
  return ['load-buffer', '-b', buffer, withoutFormats(path)]
}
