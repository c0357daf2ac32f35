/** Enter after a paste, and the proof that the program took it. */
import type { InputBox, PasteManner } from '../../programs/program.ts'
import { sleep, within } from '../clock.ts'
import type { Arrival } from '../runtime.ts'
import { TmuxRefused } from './connection.ts'
import { ControlLost } from './control.ts'
import { type Look, lookAt } from './pane-snapshot.ts'
import type { PasteSite, Sent } from './paste-target.ts'
import { giveBackInput, isOursUnsent, pressEnter, releaseInput } from './pending-input.ts'

const LOOK_AGAIN_MS = 500

/**
 * Presses Enter where the program wants it later than the paste. The pane's input is off until then. What could not be
 * entered is remembered, and entered when the program is idle again.
 */
export async function enter(site: PasteSite, manner: PasteManner, sent: Sent): Promise<Arrival | undefined> {
  const { clock } = site
  await sleep(clock, manner.enterAfterMs)
  const deadline = clock.now() + manner.evidenceMs
  let left: Sent | undefined = sent
  try {
    while (true) {
      const state = manner.state()
      // An Enter now would answer a dialog.
      if (state !== 'idle') return unpressed(`it turned ${state}`)
      const found = await pressEnter(site)
      if (found !== 'in mode') left = undefined
      if (found === 'pressed') return undefined
      if (found === 'dead') return unpressed('its process ended')
      if (clock.now() >= deadline) return unpressed('its pane is in copy mode')
      await site.stirred(LOOK_AGAIN_MS)
    }
  } catch (error) {
    left = undefined
    // It may have been pressed; the evidence will tell.
    if (error instanceof ControlLost) return undefined
    if (error instanceof TmuxRefused) return unpressed(error.message)
    throw error
  } finally {
    site.unsent = left
    await (left === undefined ? releaseInput(site) : giveBackInput(site))
  }
}

function unpressed(why: string): Arrival {
  return { state: 'uncertain', evidence: `pasted, but Enter was not pressed: ${why}` }
}

/** Waits for the program's evidence. Without it: Enter once more if the text stands unsent, then `uncertain`. */
export async function proveEntered(site: PasteSite, manner: PasteManner, sent: Sent): Promise<Arrival> {
  const { clock } = site
  const arrival = await within(clock, manner.evidenceMs, manner.evidence)
  if (arrival !== undefined) return arrival
  let seen: string
  try {
    const look = await lookAt(site, manner)
    seen = describeLook(look)
    if (isOursUnsent(site, look, sent) && (await pressEnter(site)) === 'pressed') {
      seen = 'it stood unsent in the input box, and Enter was pressed once more'
      const second = await within(clock, manner.evidenceMs, manner.evidence)
      if (second !== undefined) return { ...second, evidence: `${second.evidence}, after a second Enter` }
    }
  } catch (error) {
    if (!(error instanceof ControlLost || error instanceof TmuxRefused)) throw error
    seen = error.message
  }
  return {
    state: 'uncertain',
    evidence: `written, but no sign of it within ${manner.evidenceMs} ms: ${seen}`,
  }
}

const BOX: Record<InputBox, string> = {
  empty: 'is empty',
  draft: 'holds text',
  unknown: 'cannot be made out',
}

function describeLook({ facts }: Look): string {
  if (facts.isDead) return 'its process ended'
  return `it is ${facts.state}, its input box ${BOX[facts.inputBox]}`
}
