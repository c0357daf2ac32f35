import { z } from 'zod'

/**
 * Saved before the launch: if the service is killed before the launch completes, the next one finds the
 * processes by their mark and knows the conversation they were to resume.
 */
const TmuxSavedLaunch = z.object({
  mark: z.string(),
  /** Saved state is only valid for the program that wrote it. */
  programName: z.string(),
  program: z.unknown(),
})
export type TmuxSavedLaunch = z.output<typeof TmuxSavedLaunch>

/** Finds an agent again after the service restarts, and its conversation if the agent is gone. */
export const TmuxSavedState = TmuxSavedLaunch.extend({
  pane: z.string().regex(/^%\d+$/),
  /** Pane ids are unique only within one server. */
  server: z.object({ pid: z.int(), startedAt: z.string() }),
  /** Pid plus start time identify the process even if the pid is reused. */
  process: z.object({ pid: z.int(), startedAt: z.string() }),
})
export type TmuxSavedState = z.output<typeof TmuxSavedState>

/** Ignores state saved by another runtime or an incompatible version. */
export function readTmuxSavedState(value: unknown): TmuxSavedState | TmuxSavedLaunch | undefined {
  return TmuxSavedState.safeParse(value).data ?? TmuxSavedLaunch.safeParse(value).data
}
