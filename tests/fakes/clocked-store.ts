import type { Store } from '../../src/store/store.ts'
import type { SimulatedClock } from './simulated-clock.ts'

/** A store on a real disk; the simulated clock waits for its writes. */
export function clockedStore(store: Store, clock: SimulatedClock): Store {
  let writing = 0
  clock.waitFor(() => writing > 0)
  return {
    ...store,
    async write(work, place) {
      writing += 1
      try {
        return await store.write(work, place)
      } finally {
        writing -= 1
      }
    },
  }
}
