import { z } from 'zod'

/** What finds an agent again after a restart of the service, and its conversation when the agent is gone. */
export const Kept = z.object({
  pane: z.string().regex(/^%\d+$/),
  /** Pane ids are only unique within one server. */
  server: z.object({ pid: z.int(), startedAt: z.string() }),
  /** Pids come again; with the time of its start it is the same process. */
  process: z.object({ pid: z.int(), startedAt: z.string() }),
  mark: z.string(),
  program: z.unknown(),
})
export type Kept = z.output<typeof Kept>

/** What another runtime or an older version kept is of no use, and no reason to fail. */
export function readKept(value: unknown): Kept | undefined {
  const parsed = Kept.safeParse(value)
  return parsed.success ? parsed.data : undefined
}
