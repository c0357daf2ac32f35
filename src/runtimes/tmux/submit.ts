/** Presses Enter after a paste and waits for evidence that the program accepted the text. */

import { sleep, within } from '../../base/clock.ts'
import type { InputBox, PasteOptions } from '../../programs/program.ts'
import type { DeliveryResult, Turn } from '../runtime.ts'
import { TmuxRefused } from './connection.ts'
import { ControlLost } from './control.ts'
import { type PaneSnapshot, takeSnapshot } from './pane-snapshot.ts'
import type { PastedText, PasteTarget } from './paste-target.ts'
import {
  clearPending,
  enableInput,
  isOurPendingText,
  leavePending,
  pressEnter,
  returnKeyboard,
} from './pending-input.ts'
import { withoutControls } from './quote.ts'
import { writeWhenAllowed } from './write.ts'

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

/** Delivers a turn: waits for the guard, pastes, submits and collects evidence. */
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
