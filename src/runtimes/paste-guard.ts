import type { SessionState } from '../model/agent.ts'
import type { InputBox } from '../programs/program.ts'

/** All that decides whether text may be put into a pane right now. */
export interface PaneFacts {
  /** The program's word. */
  readonly state: SessionState
  readonly inputBox: InputBox
  /** Its process ended. */
  readonly isDead: boolean
  /** Copy mode or another mode of the terminal: a paste would go in without its brackets, and Enter nowhere. */
  readonly isInMode: boolean
  /** What is typed here is typed into other panes too. */
  readonly isSynchronized: boolean
  /** Someone switched the pane's input off: what we write would vanish. */
  readonly isInputOff: boolean
  /** The program asked for bracketed paste; without it each line of a text is a turn of its own. */
  readonly isBracketed: boolean
  /** How long ago a person last touched a key who sees this pane, or types from elsewhere; undefined without one. */
  readonly personQuietMs: number | undefined
  /** Who has taken it over, and types into it from elsewhere. */
  readonly takenBy?: string | undefined
}

export type GuardDecision =
  | { readonly write: true }
  | {
      readonly write: false
      readonly reason: string
      /** Looking again is of no use. */
      readonly isFinal?: true
      /** When it is time that has to pass. */
      readonly againMs?: number
    }

/** Someone who just typed is about to type again. */
export const PERSON_QUIET_MS = 2000

/** Why nothing is given to an agent in that state. */
export const NOT_IDLE: Record<Exclude<SessionState, 'idle'>, string> = {
  initializing: 'it is still starting',
  busy: 'it is busy',
  waiting_input: 'it asks a person something',
  paused: 'it is paused',
  error: 'it is in trouble',
  exited: 'it has exited',
  unknown: 'nobody knows what it is doing',
}

/** The one guard of every pane write. Fails closed: what is not known to be right is waited for. */
export function guardPaste(facts: PaneFacts): GuardDecision {
  if (facts.isDead) return { write: false, reason: 'its process has ended', isFinal: true }
  if (facts.state !== 'idle') return { write: false, reason: NOT_IDLE[facts.state] }
  if (facts.takenBy !== undefined)
    return { write: false, reason: `${facts.takenBy} has taken over its terminal` }
  if (facts.isInMode) return { write: false, reason: 'its pane is in copy mode' }
  if (facts.isSynchronized) return { write: false, reason: 'its pane is synchronized with others' }
  if (facts.isInputOff) return { write: false, reason: 'the input of its pane is switched off' }
  if (!facts.isBracketed)
    return { write: false, reason: 'it does not take pasted text as one piece right now' }
  if (facts.inputBox === 'draft') return { write: false, reason: "a person's draft stands in its input box" }
  if (facts.inputBox !== 'empty') return { write: false, reason: 'its input box cannot be made out' }
  if (facts.personQuietMs !== undefined && facts.personQuietMs < PERSON_QUIET_MS) {
    const againMs = PERSON_QUIET_MS - facts.personQuietMs
    return { write: false, reason: 'a person is at its keyboard', againMs }
  }
  return { write: true }
}
