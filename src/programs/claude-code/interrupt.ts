import { setTimeout as sleep } from 'node:timers/promises'
import type { Pane } from '../program.ts'
import type { Activity } from './activity.ts'
import { inputBoxText, readInputBox } from './input-box.ts'
import type { Withdrawals } from './withdrawals.ts'

export interface InterruptOptions {
  readonly pane: Pane
  readonly activity: Activity
  readonly withdrawals: Withdrawals
  /** Whether what was taken back is on record. */
  keep(): Promise<boolean>
}

const ESCAPES = 3
const STOPPED_WITHIN_MS = 2000
const LOOK_EVERY_MS = 25
const CLEAR_ROUNDS = 10

export interface Interrupt {
  /** Ends the turn with Escape, and says so only when the program does. */
  end(): Promise<{ stopped: boolean; evidence: string }>
  /**
   * Takes out of the input box what an interrupt had put back there, once it is on record: until then the box is the only
   * place where it is.
   */
  emptyBox(): Promise<void>
  close(): void
}

export function createInterrupt({ pane, activity, withdrawals, keep }: InterruptOptions): Interrupt {
  /** The box as the Escape has left it, with our own text. Once it is another, a person has it. */
  let left: string | undefined
  let isClosed = false

  return {
    async end() {
      left = undefined
      while (activity.isReturning) await sleep(LOOK_EVERY_MS)
      if (activity.state === 'idle') return { stopped: true, evidence: 'its turn had ended' }
      const held = withdrawals.turns.length
      for (let press = 0; press < ESCAPES && isWorking(activity) && !isClosed; press++) {
        await pane.press(['Escape'])
        const deadline = performance.now() + STOPPED_WITHIN_MS
        // Once it says that it is there, a further Escape would be for what stands in the box.
        const isAwaited = () => activity.isReturning || performance.now() < deadline
        while (!activity.isAtPrompt && isAwaited()) await sleep(LOOK_EVERY_MS)
      }
      if (!activity.isAtPrompt)
        return { stopped: false, evidence: `it is ${activity.state} in spite of Escape` }
      // Put back by the Escape, into a box that was empty: a prompt is not put back over a draft.
      if (withdrawals.turns.length > held) {
        if (await keep()) await clearBox(pane)
        else left = inputBoxText(await pane.screen())
      }
      return { stopped: true, evidence: 'it is back at its prompt after Escape' }
    },
    close() {
      isClosed = true
    },
    async emptyBox() {
      const ours = left
      if (ours === undefined || !(await keep())) return
      left = undefined
      if (inputBoxText(await pane.screen()) === ours) await clearBox(pane, ours)
    },
  }
}

/** An Escape too many would clear a person's draft, or open a menu. */
function isWorking({ state }: Activity): boolean {
  return state === 'busy' || state === 'waiting_input'
}

/**
 * Control-U empties a line and does nothing to an empty box. Control-C would be half of an exit. `ours`: nothing but that,
 * or what is left of it.
 */
async function clearBox(pane: Pane, ours?: string) {
  for (let round = 0; round < CLEAR_ROUNDS; round++) {
    const screen = await pane.screen()
    if (readInputBox(screen) !== 'draft') return
    const text = inputBoxText(screen) ?? ''
    if (ours !== undefined && !ours.startsWith(text)) return
    const lines = text.split('\n').length
    await pane.press(Array.from({ length: lines * 2 }, () => 'C-u'))
    await sleep(LOOK_EVERY_MS * 4)
  }
}
