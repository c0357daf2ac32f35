const MINUTE_MS = 60_000

/** Limits how many events start per minute (C18). Other events wait in the store. */
export function createEventRate(perMinute: () => number, now: () => number) {
  let started: number[] = []

  /** Zero if an event may start now. */
  function waitMs(): number {
    const at = now()
    started = started.filter((time) => time > at - MINUTE_MS && time <= at)
    const limit = perMinute()
    return started.length < limit ? 0 : started[started.length - limit]! + MINUTE_MS - at
  }

  return { waitMs, begin: () => void started.push(now()) }
}
