import type { Clock } from '../../base/clock.ts'
import type { Log } from '../../base/log.ts'
import type { TmuxServer } from './server.ts'

/** The writing side of one pane. */
export interface PasteTarget {
  readonly server: TmuxServer
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
  readonly pane: string
  /** Resolves on a change that may matter, or after `ms`. */
  waitForChange(ms: number, signal?: AbortSignal): Promise<void>
  /** Creates a buffer file that the tmux server can read. */
  createBuffer(text: string): PasteBuffer
  /** When its input box was last seen empty; undefined before the first time. */
  boxEmptyAt: number | undefined
  /** Whether the program has read everything written to its terminal. */
  hasReadInput(): Promise<boolean>
  /**
   * Text pasted but not submitted, by an earlier service or because the program became busy; or submitted,
   * but not known to be accepted.
   */
  pending: PastedText | undefined
  /**
   * When pending text was submitted, until the program is seen to accept it: its reported state lags behind.
   */
  pendingEnteredAt: number | undefined
  /** Reports why text cannot be written yet; undefined when nothing blocks. */
  setBlocked(reason: string | undefined): void
  /** Stops the watch of a blocked paste. */
  blockedWatch: AbortController | undefined
  /** The person typing from the control room. */
  takenBy: string | undefined
  /** When that person last typed; tmux does not know of it. */
  typedAt: number | undefined
}

/** Identifies a text in an input box. */
export interface TextOutline {
  readonly lastLine: string
  readonly lines: number
}

/** A pasted text. */
export interface PastedText extends TextOutline {
  /** A person who came later may have added to it. */
  readonly writtenAt: number
  /** Number of Enter presses since it became pending. */
  readonly presses?: number
}

export interface PasteBuffer {
  readonly path: string
  /** Name of the tmux buffer, unique to this text. */
  readonly name: string
  readonly outline: TextOutline
  /** Writes the file, once. */
  writeFile(): void
  remove(): void
}

/**
 * `entered`: Enter was pressed. `pasted`: Enter is still to be pressed. `unknown`: the connection broke
 * meanwhile.
 */
export type WriteResult = 'entered' | 'pasted' | 'unknown'
