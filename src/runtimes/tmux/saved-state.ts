import { z } from 'zod'

/**
 * Kept before the agent is launched: whoever is killed between the launch and what comes of it leaves the mark by which
 * its processes are found, and the conversation that they were to take up.
 */
const KeptLaunch = z.object({
  mark: z.string(),
  /** Another program can make nothing of what this one kept. */
  programName: z.string(),
  program: z.unknown(),
})
export type KeptLaunch = z.output<typeof KeptLaunch>

/** What finds an agent again after a restart of the service, and its conversation when the agent is gone. */
export const Kept = KeptLaunch.extend({
  pane: z.string().regex(/^%\d+$/),
  /** Pane ids are only unique within one server. */
  server: z.object({ pid: z.int(), startedAt: z.string() }),
  /** Pids come again; with the time of its start it is the same process. */
  process: z.object({ pid: z.int(), startedAt: z.string() }),
})
export type Kept = z.output<typeof Kept>

/** What another runtime or an older version kept is of no use, and no reason to fail. */
export function readKept(value: unknown): Kept | KeptLaunch | undefined {
  return Kept.safeParse(value).data ?? KeptLaunch.safeParse(value).data
}
