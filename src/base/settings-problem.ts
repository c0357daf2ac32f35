import type { z } from 'zod'

/** A mistake in an agent's settings in orc.yaml. The path is relative to `with`. */
export interface SettingsProblem {
  path: (string | number)[]
  message: string
  hint: string
}

/** Turns schema issues into problems that share one hint. */
export function problemsIn({ issues }: z.ZodError, hint: string): SettingsProblem[] {
  return issues.map(({ path, message }) => ({ path: path as (string | number)[], message, hint }))
}
