import { setTimeout as sleep } from 'node:timers/promises'
import type { Pane } from '../program.ts'
import type { ClaudeActivity } from './activity.ts'
import { inputBoxText, readInputBox } from './input-box.ts'
import type { Withdrawals } from './withdrawals.ts'

interface InterruptOptions {
  readonly pane: Pane
  readonly activity: ClaudeActivity
  readonly withdrawals: Withdrawals
  /** Whether the withdrawn prompt is saved. */
  keep(): Promise<boolean>
}

const ESCAPES = 3
const STOPPED_WITHIN_MS = 2000
const LOOK_EVERY_MS = 25
const CLEAR_ROUNDS = 10

interface TurnInterrupt {
  /** Ends the turn with Escape, and reports that only with the program's evidence. */
  end(): Promise<{ stopped: boolean; evidence: string }>
  /**
   * Clears the prompt that an interrupt put back into the input box, once it is saved: until then the box is
   * the only copy.
   */
  emptyBox(): Promise<void>
  close(): void
}

export function createInterrupt({ pane, activity, withdrawals, keep }: InterruptOptions): TurnInterrupt {
  /** The box with our own text as the Escape left it. If it differs, a person has edited it. */
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
        // Once it is at its prompt, another Escape would affect the input box.
        const isAwaited = () => activity.isReturning || performance.now() < deadline
        while (!activity.isAtPrompt && isAwaited()) await sleep(LOOK_EVERY_MS)
      }
      if (!activity.isAtPrompt)
        return { stopped: false, evidence: `it is still ${activity.state} after Escape` }
      // Put back by the Escape into an empty box: a prompt is not put back over a draft.
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
function isWorking({ state }: ClaudeActivity): boolean {
  return state === 'busy' || state === 'waiting_input'
}

/**
 * Control-U clears a line and does nothing in an empty box. Control-C would be half of an exit. `ours`: clear
 * only this text, or the rest of it.
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
