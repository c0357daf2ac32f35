import type { Stamps } from '../../workspaces/stamps.ts'
import type { Driver } from './driver.ts'

/** Of one run: as many as may be at work, and some. */
const MOST = 256

interface Sealed {
  /** The manifest that they belong to. */
  readonly inbox: string
  readonly stamps: Stamps
}

/**
 * How the inboxes that this service filled were left, until the work that was done with them is validated. Only a help:
 * one that is not here is read again.
 */
export function createSealedInboxes() {
  const known = new WeakMap<Driver, Map<string, Sealed>>()
  return {
    seal(driver: Driver, node: string, inbox: string, stamps: Stamps): void {
      const ofRun = known.get(driver) ?? new Map<string, Sealed>()
      known.set(driver, ofRun)
      ofRun.delete(node)
      ofRun.set(node, { inbox, stamps })
      for (const oldest of ofRun.keys()) {
        if (ofRun.size <= MOST) break
        ofRun.delete(oldest)
      }
    },
    /** Once. Undefined, too, where it was filled with something else since. */
    take(driver: Driver, node: string, inbox: string | undefined): Stamps | undefined {
      const sealed = known.get(driver)?.get(node)
      known.get(driver)?.delete(node)
      return sealed?.inbox === inbox ? sealed?.stamps : undefined
    },
  }
}

export type SealedInboxes = ReturnType<typeof createSealedInboxes>
