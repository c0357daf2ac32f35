import type { Log } from '../base/log.ts'
import { findReceipt, keepReceipt } from '../commands/store/idempotency.ts'
import type { Store } from '../store/store.ts'

/** Places in an agent's record whose answer reached it: read again, they wake it for nothing (C25). */
export interface AnsweredPlaces {
  /** Neither ever rejects: at worst it is answered once more. */
  has(place: string): Promise<boolean>
  add(place: string): Promise<void>
}

export function createAnsweredPlaces(store: Store, agent: string, log: Log): AnsweredPlaces {
  const keyOf = (place: string) => `answered ${place}`
  return {
    async has(place) {
      try {
        return (await findReceipt(store, agent, keyOf(place))) !== undefined
      } catch (error) {
        log.warn({ agent, err: error }, 'whether an answer had arrived could not be read')
        return false
      }
    },
    async add(place) {
      try {
        await store.write(async (tx) => {
          if ((await findReceipt(tx, agent, keyOf(place))) !== undefined) return
          await keepReceipt(tx, agent, keyOf(place), { digest: '', receipt: '' })
        })
      } catch (error) {
        log.warn({ agent, err: error }, 'that an answer arrived could not be stored')
      }
    },
  }
}
