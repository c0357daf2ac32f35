import type { SessionState } from '../../base/agent.ts'
import type { InputBox } from '../../programs/program.ts'
import { NOT_IDLE_REASON } from '../runtime.ts'

/** Everything that decides whether text may be pasted into a pane right now. */
export interface PaneFacts {
  /** The state the program reports. */
  readonly state: SessionState
  readonly inputBox: InputBox
  /** The pane's process has ended. */
  readonly isDead: boolean
  /** Copy mode or another tmux mode: a paste would lose its brackets, and Enter would be dropped. */
  readonly isInMode: boolean
  /** Keys typed here also go to other panes. */
  readonly isSynchronized: boolean
  /** The pane's input is switched off, so pasted text would vanish. */
  readonly isInputOff: boolean
  /** The program has enabled bracketed paste; without it, each line becomes a separate turn. */
  readonly isBracketed: boolean
  /**
   * Time since a person who sees this pane, or types into it remotely, last pressed a key; undefined without
   * such a person.
   */
  readonly personQuietMs: number | undefined
  /** The person who has taken over the terminal and types into it remotely. */
  readonly takenBy?: string | undefined
}

type GuardDecision =
  | { readonly write: true }
  | {
      readonly write: false
      readonly reason: string
      /** Retrying cannot help. */
      readonly isFinal?: true
      /** Retry after this long, if the block ends by itself. */
      readonly againMs?: number
    }

/** A person who just typed is likely to type again. */
export const PERSON_QUIET_MS = 2000

/** The single guard of every pane write. It fails closed: an unknown fact blocks the paste. */
export function guardPaste(facts: PaneFacts): GuardDecision {
  if (facts.isDead) return { write: false, reason: 'its process has ended', isFinal: true }
  if (facts.state !== 'idle') return { write: false, reason: NOT_IDLE_REASON[facts.state] }
  if (facts.takenBy !== undefined)
    return { write: false, reason: `${facts.takenBy} has taken over its terminal` }
  if (facts.isInMode) return { write: false, reason: 'its pane is in copy mode' }
  if (facts.isSynchronized) return { write: false, reason: 'its pane is synchronized with others' }
  if (facts.isInputOff) return { write: false, reason: 'the input of its pane is switched off' }
  if (!facts.isBracketed) return { write: false, reason: 'it does not accept bracketed paste right now' }
  if (facts.inputBox === 'draft') return { write: false, reason: "its input box holds a person's draft" }
  if (facts.inputBox !== 'empty') return { write: false, reason: 'its input box cannot be recognised' }
  if (facts.personQuietMs !== undefined && facts.personQuietMs < PERSON_QUIET_MS) {
    const againMs = PERSON_QUIET_MS - facts.personQuietMs
    return { write: false, reason: 'a person is typing', againMs }
  }
  return { write: true }
}
