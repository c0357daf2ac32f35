import type { Stamps } from '../../workspaces/stamps.ts'
import type { Driver } from './driver.ts'

/**
 * How the inboxes that this service filled were left, until the work that was done with them is validated. Only a help:
 * one that is not here is read again.
 */
export function createSealedInboxes() {
  const known = new WeakMap<Driver, Map<string, Stamps>>()
  return {
    /** Before it is filled anew: what is known of it ends. */
    open(driver: Driver, node: string): void {
      known.get(driver)?.delete(node)
    },
    seal(driver: Driver, node: string, stamps: Stamps): void {
      const ofRun = known.get(driver) ?? new Map<string, Stamps>()
      known.set(driver, ofRun)
      ofRun.set(node, stamps)
    },
    /** Once: there are as many as agents at work, not as in the run. */
    take(driver: Driver, node: string): Stamps | undefined {
      const stamps = known.get(driver)?.get(node)
      known.get(driver)?.delete(node)
      return stamps
    },
  }
}

export type SealedInboxes = ReturnType<typeof createSealedInboxes>
