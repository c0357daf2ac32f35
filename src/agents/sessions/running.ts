import type { AgentDelivery } from '../../delivery/delivery.ts'
import type { Session } from '../../runtimes/runtime.ts'

/** An agent that runs, or is on its way there. */
export interface Running {
  /** Undefined before its rows are read. */
  delivery: AgentDelivery | undefined
  readonly started: Promise<Session | undefined>
  /** All that its start does is done. */
  readonly settled: Promise<void>
  /** Calls its start off; undefined once that is done. */
  gone: AbortController | undefined
  /** A process was started for it; otherwise it was found running. */
  isNew: boolean
}
