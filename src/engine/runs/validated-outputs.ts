import type { Dependency } from '../../model/plan.ts'
import type { OutputsWanted } from '../../workspaces/inbox.ts'
import type { OutputContent } from '../../workspaces/outbox.ts'
import { workspaceOf } from '../run-place.ts'
import type { Driver } from './driver.ts'

/** For each run. What is over it is read again from the outbox. */
const MOST_BYTES = 8 * 1024 * 1024
/** What a file takes besides its content. */
const FILE_BYTES = 512

interface Kept {
  readonly outputsHash: string
  readonly outputs: readonly OutputContent[]
  readonly bytes: number
}

interface Shelf {
  readonly kept: Map<string, Kept>
  bytes: number
}

/**
 * What was validated, as it was read for that, for those who take it over: it need not be read again, and nobody can have
 * exchanged it. Only a help: whatever is not here is in the outbox, and is then compared with what was validated.
 */
export function createValidatedOutputs() {
  const shelves = new WeakMap<Driver, Shelf>()

  function remove(shelf: Shelf, node: string) {
    shelf.bytes -= shelf.kept.get(node)?.bytes ?? 0
    shelf.kept.delete(node)
  }

  /** Only of this very result. */
  function of(driver: Driver, node: string, outputsHash: string): readonly OutputContent[] | undefined {
    const kept = shelves.get(driver)?.kept.get(node)
    return kept?.outputsHash === outputsHash ? kept.outputs : undefined
  }

  return {
    /** `outputs`: all of them. */
    keep(driver: Driver, node: string, outputsHash: string, outputs: readonly OutputContent[]): void {
      const shelf = shelves.get(driver) ?? { kept: new Map<string, Kept>(), bytes: 0 }
      shelves.set(driver, shelf)
      remove(shelf, node)
      const bytes = outputs.reduce((sum, one) => sum + one.bytes.length + FILE_BYTES, 0)
      shelf.kept.set(node, { outputsHash, outputs: outputs.map(onItsOwn), bytes })
      shelf.bytes += bytes
      for (const oldest of shelf.kept.keys()) {
        if (shelf.bytes <= MOST_BYTES) break
        remove(shelf, oldest)
      }
    },
    of,
    /** What another takes over from it. */
    from(
      driver: Driver,
      { agent, outputs, copyTo }: Pick<Dependency, 'agent' | 'outputs' | 'copyTo'>,
    ): OutputsWanted {
      const result = driver.run.nodes.get(agent)!.result
      const known = result === null ? undefined : of(driver, agent, result.outputsHash)
      const wanted = { workspace: workspaceOf(driver.place, agent), agent, outputs, copyTo }
      return known === undefined ? wanted : { ...wanted, contents: known }
    },
  }
}

/** A small buffer is a part of a large one, which all that was read beside it shares: kept, it would keep that. */
function onItsOwn(output: OutputContent): OutputContent {
  const bytes = Buffer.allocUnsafeSlow(output.bytes.length)
  output.bytes.copy(bytes)
  return { ...output, bytes }
}

export type ValidatedOutputs = ReturnType<typeof createValidatedOutputs>
