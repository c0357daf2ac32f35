import { useSyncExternalStore } from 'react'

const TICK_MS = 10_000
/** The `Date` header has whole seconds and takes a while to arrive: ignore smaller differences. */
const TOLERANCE_MS = 3000
/** How far the clock of the service is ahead. Every time on the page comes from the service. */
let aheadMs = 0
let now = Date.now()
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(listener: () => void) {
  listeners.add(listener)
  // The clock stands still without listeners.
  if (timer === undefined) now = Date.now() + aheadMs
  timer ??= setInterval(tick, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

function tick() {
  now = Date.now() + aheadMs
  for (const listener of listeners) listener()
}

/** Corrects the clock by the `Date` header of an answer. */
export function setServiceTime(date: string | null) {
  const at = Date.parse(date ?? '')
  if (Number.isNaN(at)) return
  const ahead = at - Date.now()
  const next = Math.abs(ahead) < TOLERANCE_MS ? 0 : ahead
  if (Math.abs(next - aheadMs) < TOLERANCE_MS) return
  aheadMs = next
  tick()
}

/** The current time of the service; a component that shows an age rerenders every 10 s. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}
