import type { Session } from '../../runtimes/runtime.ts'
import type { Attendant } from '../attendant.ts'

/** An agent that runs, or is on its way there. */
export interface Running {
  /** Undefined before its rows are read. */
  attendant?: Attendant
  readonly started: Promise<Session | undefined>
  /** All that its start does is done. */
  readonly settled: Promise<void>
  /** Calls its start off; of no effect on one that is there. */
  readonly gone: AbortController
}
