const MINUTE_MS = 60_000

/** How many events are begun in a minute (C18). What comes faster waits in the store; none is lost. */
export function createPace(perMinute: () => number, now: () => number) {
  let begun: number[] = []

  /** Zero: now. */
  function waitMs(): number {
    const at = now()
    begun = begun.filter((time) => time > at - MINUTE_MS && time <= at)
    const most = perMinute()
    return begun.length < most ? 0 : begun[begun.length - most]! + MINUTE_MS - at
  }

  return { waitMs, begin: () => void begun.push(now()) }
}
