import { useSyncExternalStore } from 'react'

/** One clock for the page, told to whoever shows how long ago something was. */
const EVERY_MS = 10_000
/** Answers name the second only, and take a while: less than this is no difference. */
const CLOSE_MS = 3000
/** How far the clock of the service is ahead of this machine's: all that is shown was written by the service. */
let aheadMs = 0
let now = Date.now()
const readers = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(reader: () => void) {
  readers.add(reader)
  // Nobody wound it while nobody looked.
  if (timer === undefined) now = Date.now() + aheadMs
  timer ??= setInterval(tick, EVERY_MS)
  return () => {
    readers.delete(reader)
    if (readers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

function tick() {
  now = Date.now() + aheadMs
  for (const one of readers) one()
}

/** The `Date` of an answer of the service. */
export function tellServiceTime(date: string | null) {
  const at = Date.parse(date ?? '')
  if (Number.isNaN(at)) return
  const ahead = at - Date.now()
  const next = Math.abs(ahead) < CLOSE_MS ? 0 : ahead
  if (Math.abs(next - aheadMs) < CLOSE_MS) return
  aheadMs = next
  tick()
}

/** By the clock of the service, as far as it is known. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}
