import { useSyncExternalStore } from 'react'

/** One clock for the page, told to whoever shows how long ago something was. */
const EVERY_MS = 10_000
let now = Date.now()
const readers = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined

function subscribe(reader: () => void) {
  readers.add(reader)
  timer ??= setInterval(() => {
    now = Date.now()
    for (const one of readers) one()
  }, EVERY_MS)
  return () => {
    readers.delete(reader)
    if (readers.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now)
}
