import { setImmediate } from 'node:timers/promises'

/** Synchronous calls on many small files take a tenth of the time; a pace yields in between, so that they don't block the event loop. */
export interface Pace {
  /** Await it between two steps unless it is undefined. Throws after an abort. */
  rest(): Promise<void> | undefined
}

/** Longest time to block the event loop. */
const SLICE_MS = 4

export function startPace(signal?: AbortSignal): Pace {
  let began = performance.now()
  return {
    rest() {
      signal?.throwIfAborted()
      if (performance.now() - began < SLICE_MS) return undefined
      return setImmediate().then(() => {
        began = performance.now()
      })
    },
  }
}
