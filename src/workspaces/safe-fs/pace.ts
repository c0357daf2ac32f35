import { setImmediate } from 'node:timers/promises'

/** Work on many small files goes by synchronous calls, a tenth of the cost; this keeps it from holding up the rest. */
export interface Pace {
  /** To be awaited between two pieces of work where it is not undefined. Throws once the work is called off. */
  rest(): Promise<void> | undefined
}

/** The longest that other work waits. */
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
