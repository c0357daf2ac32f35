import type { AppError } from './errors.ts'

/** An expected outcome as a value. A broken invariant throws instead. */
export type Result<T, E = AppError> = { ok: true; value: T } | { ok: false; error: E }
