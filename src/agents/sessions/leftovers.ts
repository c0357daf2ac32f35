import type { Log } from '../../base/log.ts'
import type { Runtime } from '../../runtimes/runtime.ts'
import type { Store } from '../../store/store.ts'
import { forgetKept, readSession, type SessionRow } from '../store/sessions.ts'

/** What earlier sessions kept, and what may still run of them. */
export interface Leftovers {
  /** What a session of another runtime kept is of no use to this one, and what still runs of it ends. */
  keptFor(runtime: Runtime, row: SessionRow): Promise<unknown>
  /** Ends what runs of it, though its conversation can still be taken up. */
  end(agent: string): Promise<void>
  /** Ends what runs of it, and forgets it. What could not be followed, and so was never taken for running, may still run. */
  discard(agent: string): Promise<void>
}

/** As it is stored: whose notes they are, and the notes. */
interface Kept {
  runtime: string
  value: unknown
}

export function createLeftovers(store: Store, log: Log, runtimes: ReadonlyMap<string, Runtime>): Leftovers {
  async function discardKept(agent: string, kept: string) {
    if (await endKept(agent, kept)) await store.write((tx) => forgetKept(tx, agent))
  }

  /** Says whether nothing of it runs any more. */
  async function endKept(agent: string, kept: string): Promise<boolean> {
    const { runtime: keeper, value } = JSON.parse(kept) as Kept
    try {
      await runtimes.get(keeper)?.discard?.(value)
      return true
    } catch (error) {
      log.error({ agent, err: error }, 'what an earlier session left running could not be ended')
      return false
    }
  }

  const keptOf = async (agent: string) => (await readSession(store, agent))?.kept ?? undefined

  return {
    async keptFor(runtime, { agent, kept }) {
      if (kept === null) return undefined
      const { runtime: keeper, value } = JSON.parse(kept) as Kept
      if (keeper === runtime.name) return value
      await discardKept(agent, kept)
      return undefined
    },
    async end(agent) {
      const kept = await keptOf(agent)
      if (kept !== undefined) await endKept(agent, kept)
    },
    async discard(agent) {
      const kept = await keptOf(agent)
      if (kept !== undefined) await discardKept(agent, kept)
    },
  }
}
