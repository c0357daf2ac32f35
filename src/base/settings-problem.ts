import type { z } from 'zod'

/** What is wrong with an agent's settings in orc.yaml; the path is the one inside them. */
export interface SettingsProblem {
  path: (string | number)[]
  message: string
  hint: string
}

/** What a schema found wrong; the hint says what would be right. */
export function problemsIn({ issues }: z.ZodError, hint: string): SettingsProblem[] {
  return issues.map(({ path, message }) => ({ path: path as (string | number)[], message, hint }))
}
