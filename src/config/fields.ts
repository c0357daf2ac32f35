/** Fields that several sections of orc.yaml have. */
import { z } from 'zod'
import { DURATION } from '../base/durations.ts'

/** Secrets never appear in orc.yaml, only the environment variables that hold them. */
export const envVariable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, { error: 'is not a valid name of an environment variable' })

export const httpUrl = z
  .string()
  .max(2000)
  .regex(/^https?:\/\/[^\s/]/, { error: 'must start with http:// or https://' })

export const duration = z.string().regex(DURATION, { error: 'is not a duration' })
