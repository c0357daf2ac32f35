import { z } from 'zod'

/**
 * One route of the HTTP API.
 * `who`: `anyone` needs no token, `token` any valid one, `person` that of a person, `operator` that of one who may
 * change things; whoever may only look may use its GETs.
 */
export interface Route {
  method: 'get' | 'post' | 'delete'
  path: string
  who: 'anyone' | 'token' | 'person' | 'operator'
  summary: string
  query?: z.ZodObject
  body?: z.ZodType
  /** How many bytes the body may have; 64 KiB unless it is said. `own`: the handler reads it, in forms of its own. */
  limit?: number | 'own'
  answer: z.ZodType
  /** The media type of the answer; JSON unless it is said. In a stream of events, the schema is that of each one's data. */
  type?: 'text/event-stream' | 'text/plain' | 'text/markdown'
  /** Other forms of the answer, by media type. */
  also?: Readonly<Record<string, string>>
}

export type Routes = Record<string, Route>

export const count = (most: number) => z.coerce.number<number | string>().int().min(1).max(most)
export const time = z.string().describe('A time (ISO 8601) or a span back from now, such as 10m, 2h, 1d')
export const names = z.array(z.string())
/** A place in the audit, or how many are left out. */
export const sequence = z.coerce.number<number | string>().int().min(0)
/** For a long poll. */
export const wait = z.coerce
  .number<number | string>()
  .min(0)
  .max(60)
  .default(25)
  .describe('Seconds to wait when there is nothing')
