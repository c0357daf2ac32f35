import type { Clock } from '../../src/base/clock.ts'

export interface SimulatedClock extends Clock {
  /** Advances the time: due timers fire in order, and their consequences settle. */
  advance(ms: number): Promise<void>
  /** Stops the time while this work runs, because the disk takes real time. */
  waitFor(isBusy: () => boolean): void
}

/** A clock that only moves when told to, so that no test depends on real time. */
export function createSimulatedClock(start = Date.UTC(2030, 0, 1)): SimulatedClock {
  let now = start
  const alarms = new Set<{ at: number; callback: () => void }>()
  const workers: (() => boolean)[] = []
  const settle = () => comeToRest(() => workers.some((isBusy) => isBusy()))
  const earliest = (until: number) =>
    [...alarms].filter((alarm) => alarm.at <= until).sort((a, b) => a.at - b.at)[0]

  return {
    now: () => now,
    after(ms, callback) {
      const alarm = { at: now + ms, callback }
      alarms.add(alarm)
      return () => void alarms.delete(alarm)
    },
    waitFor: (isBusy) => void workers.push(isBusy),
    async advance(ms) {
      const until = now + ms
      await settle()
      for (let alarm = earliest(until); alarm !== undefined; alarm = earliest(until)) {
        alarms.delete(alarm)
        now = Math.max(now, alarm.at)
        alarm.callback()
        await settle()
      }
      now = until
      await settle()
    },
  }
}

/** Don't wait longer for work that hangs on purpose. */
const PATIENCE_MS = 1000

/** Group commits run in setImmediate and sync beside it; a few idle rounds let chains of them end. */
async function comeToRest(isBusy: () => boolean) {
  for (let round = 0; round < 30; round++) {
    await new Promise((resolve) => setImmediate(resolve))
    const since = performance.now()
    while (isBusy() && performance.now() - since < PATIENCE_MS) {
      round = 0
      await new Promise((resolve) => setImmediate(resolve))
    }
    if (isBusy()) return
  }
}
