import type { Clock } from '../../model/clock.ts'
import type { History } from './history.ts'
import type { Update } from './update.ts'

/** What an agent repeats of a conversation it takes up again: evidence of what it was given, and no new words (C4). */
export interface Replay {
  readonly isOn: boolean
  take(update: Update): void
  /** Resolves when nothing of it came for a while: some agents answer session/load before they are done. */
  over(isWhole: boolean): Promise<void>
}

export function createReplay(isOn: boolean, history: History, clock: Clock, quietMs: number): Replay {
  let count = 0
  return {
    get isOn() {
      return isOn
    },
    take(update) {
      count += 1
      if (update.kind === 'heard') history.replay(update.text)
    },
    async over(isWhole) {
      for (let before = -1; isWhole && before !== count; ) {
        before = count
        await new Promise<void>((resolve) => clock.after(quietMs, resolve))
      }
      if (isWhole) history.replayed()
      isOn = false
    },
  }
}
