import type { Server } from './server.ts'
import type { Clock } from './surroundings.ts'

/** One pane, as far as writing into it goes. */
export interface PasteSite {
  readonly server: Server
  readonly clock: Clock
  readonly pane: string
  /** Resolves when something happened that may matter, or after that long. */
  stirred(ms: number): Promise<void>
  /** Lays the text where the tmux server reads it. */
  spool(text: string): Spooled
  /** When its input box was last seen empty; undefined before it was. */
  boxEmptyAt: number | undefined
}

export interface Spooled {
  readonly path: string
  /** Of tmux, for this text alone. */
  readonly buffer: string
  remove(): void
}

/** Enter was pressed; it is still to be pressed; or tmux was lost in the middle, so that nobody knows. */
export type Written = 'entered' | 'pasted' | 'unknown'
