import type { Clock } from '../clock.ts'
import type { Log } from './log.ts'
import type { Server } from './server.ts'

/** One pane, as far as writing into it goes. */
export interface PasteSite {
  readonly server: Server
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  readonly pane: string
  /** Resolves when something happened that may matter, or after that long. */
  stirred(ms: number, gone?: AbortSignal): Promise<void>
  /** A place for the text where the tmux server reads it. */
  spool(text: string): Spooled
  /** When its input box was last seen empty; undefined before it was. */
  boxEmptyAt: number | undefined
  /** Whether the program has read all that was written into its terminal. */
  hasReadInput(): Promise<boolean>
  /**
   * It was pasted and not entered, by an earlier service or because the program turned to something else; or entered,
   * and not known to be taken.
   */
  unsent: Sent | undefined
  /** When that was entered after all, until the program was seen to take it: its word for its state lags behind. */
  enteredAt: number | undefined
  /** What is to be written is not written yet, for that reason; undefined when nothing is in the way. */
  waits(reason: string | undefined): void
  /** The look-out for an obstacle that outlasted a paste. */
  watching: AbortController | undefined
  /** Who types into it from the control room. */
  takenBy: string | undefined
  /** When anybody last typed there, of which tmux knows nothing. */
  typedAt: number | undefined
}

/** By what a text is known again in an input box. */
export interface Outline {
  readonly lastLine: string
  readonly lines: number
}

/** What was pasted. */
export interface Sent extends Outline {
  /** Whoever came later may have added to it. */
  readonly writtenAt: number
  /** How often Enter was pressed for it since it was left. */
  readonly presses?: number
}

export interface Spooled {
  readonly path: string
  /** Of tmux, for this text alone. */
  readonly buffer: string
  readonly outline: Outline
  /** Writes it there, once. */
  lay(): void
  remove(): void
}

/** Enter was pressed; it is still to be pressed; or tmux was lost in the middle, so that nobody knows. */
export type Written = 'entered' | 'pasted' | 'unknown'
