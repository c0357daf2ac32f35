import type { HeldOutput } from '../../workspaces/outbox.ts'
import type { Driver } from './driver.ts'

/** For each run. What is over it is read again from the outbox. */
const MOST_BYTES = 8 * 1024 * 1024
/** What a file takes besides its content. */
const FILE_BYTES = 512

interface Held {
  readonly outputsHash: string
  readonly outputs: readonly HeldOutput[]
  readonly bytes: number
}

interface Shelf {
  readonly held: Map<string, Held>
  bytes: number
}

/**
 * What was validated, as it was read for that, for those who take it over: it need not be read again, and nobody can have
 * exchanged it. Only a help: whatever is not here is in the outbox, and is then compared with what was validated.
 */
export function createHeldOutputs() {
  const shelves = new WeakMap<Driver, Shelf>()

  function remove(shelf: Shelf, node: string) {
    shelf.bytes -= shelf.held.get(node)?.bytes ?? 0
    shelf.held.delete(node)
  }

  return {
    /** `outputs`: all of them. */
    hold(driver: Driver, node: string, outputsHash: string, outputs: readonly HeldOutput[]): void {
      const shelf = shelves.get(driver) ?? { held: new Map<string, Held>(), bytes: 0 }
      shelves.set(driver, shelf)
      remove(shelf, node)
      const bytes = outputs.reduce((sum, one) => sum + one.bytes.length + FILE_BYTES, 0)
      shelf.held.set(node, { outputsHash, outputs, bytes })
      shelf.bytes += bytes
      for (const oldest of shelf.held.keys()) {
        if (shelf.bytes <= MOST_BYTES) break
        remove(shelf, oldest)
      }
    },
    /** Only of this very result. */
    of(driver: Driver, node: string, outputsHash: string): readonly HeldOutput[] | undefined {
      const held = shelves.get(driver)?.held.get(node)
      return held?.outputsHash === outputsHash ? held.outputs : undefined
    },
  }
}

export type HeldOutputs = ReturnType<typeof createHeldOutputs>
