import { z } from 'zod'

/**
 * One route of the HTTP API.
 * `who`: `anyone` needs no token, `token` any valid token, `person` a person's token, `operator` the token of a person who
 * may change things; viewers may use its GETs.
 */
export interface Route {
  method: 'get' | 'post' | 'delete'
  path: string
  who: 'anyone' | 'token' | 'person' | 'operator'
  summary: string
  /** The command that the route sends: its fields are the path's parameters and the body, its details the answer. */
  command?: string
  query?: z.ZodObject
  body?: z.ZodType
  /** Maximum size of the body in bytes, 64 KiB by default. `own`: the handler reads the body itself. */
  limit?: number | 'own'
  answer: z.ZodType
  /** Media type of the answer, JSON by default. For an event stream, `answer` describes the data of one event. */
  type?: 'text/event-stream' | 'text/plain' | 'text/markdown'
  /** Other representations of the answer, by media type. */
  also?: Readonly<Record<string, string>>
}

export type Routes = Record<string, Route>

export const count = (most: number) => z.coerce.number<number | string>().int().min(1).max(most)
export const time = z
  .string()
  .describe('An ISO 8601 time, or a duration back from now, such as 10m, 2h or 1d')
export const names = z.array(z.string())
/** A sequence number of the audit, or a number of entries to skip. */
export const sequence = z.coerce.number<number | string>().int().min(0)
/** For long polling. */
export const wait = z.coerce
  .number<number | string>()
  .min(0)
  .max(60)
  .default(25)
  .describe('Seconds to wait while there is nothing to return')
