import type { Arrival, SessionPort, Turn } from '../runtime.ts'

/** How far one turn came. `deliver` is answered once; what is learnt later goes by `arrived`. */
export interface OpenTurn {
  readonly ids: readonly string[]
  readonly arrival: Promise<Arrival>
  /** All of it was handed to the pipe. */
  isWritten: boolean
  /** The agent gave a sign that it has the turn. */
  readonly isTaken: boolean
  reach(state: 'submitted' | 'read', evidence: string): void
  /** Nothing shows that it came. Only heard as long as `deliver` waits. */
  doubt(state: 'queued' | 'uncertain', evidence: string): void
}

const RUNGS = ['none', 'submitted', 'read'] as const

export function openTurn(turn: Turn, arrived: SessionPort['arrived']): OpenTurn {
  const { promise, resolve } = Promise.withResolvers<Arrival>()
  let rung: (typeof RUNGS)[number] = 'none'
  let isAnswered = false

  function answer(arrival: Arrival) {
    isAnswered = true
    resolve(arrival)
  }

  return {
    ids: turn.ids,
    arrival: promise,
    isWritten: false,
    get isTaken() {
      return rung !== 'none'
    },
    reach(state, evidence) {
      if (RUNGS.indexOf(state) <= RUNGS.indexOf(rung)) return
      rung = state
      if (!isAnswered) answer({ state, evidence })
      else if (turn.ids.length > 0) arrived(turn.ids, state, evidence)
    },
    doubt(state, evidence) {
      if (!isAnswered) answer({ state, evidence })
    },
  }
}
