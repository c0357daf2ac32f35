import type { AppError } from './errors.ts'

/** An expected outcome as a value. A broken invariant throws instead. */
export type Result<T, E = AppError> = { ok: true; value: T } | { ok: false; error: E }

export function failure<E>(error: E): { ok: false; error: E } {
  return { ok: false, error }
}

/** The result of one event in a pure core: the new state and the effects to perform, or why it refuses the event. */
export type Reduced<State, Effect, Refusal> =
  | { ok: true; state: State; effects: readonly Effect[] }
  | { ok: false; refusal: Refusal }
