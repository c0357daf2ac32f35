import { findReceipt, keepReceipt } from '../store/idempotency.ts'
import type { Store } from '../store/store.ts'
import type { Log } from './surroundings.ts'

/** Places in an agent's record whose answer reached it: read again, they wake it for nothing (C25). */
export interface AnsweredPlaces {
  has(place: string): Promise<boolean>
  /** Never rejects: at worst it is answered once more. */
  add(place: string): Promise<void>
}

export function createAnsweredPlaces(store: Store, agent: string, log: Log): AnsweredPlaces {
  const keyOf = (place: string) => `answered ${place}`
  const has = async (place: string) => (await findReceipt(store, agent, keyOf(place))) !== undefined
  return {
    has,
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
