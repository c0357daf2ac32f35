import { z } from 'zod'

/** Saved state: needed to find the program and its conversation again. */
export const CodexSavedState = z.object({
  /** Unix socket of its app-server. */
  socket: z.string(),
  launchedAt: z.number(),
  /**
   * Threads this agent had in its pane and that had a turn, the current one last: a message may be in an
   * earlier one.
   */
  threads: z.array(
    z.object({
      id: z.string(),
      /** Milliseconds. Earlier text is not this agent's: a fork copies, and a person may open any thread. */
      since: z.number(),
      /** Codex's file of the thread. */
      rollout: z.string().optional(),
    }),
  ),
  /** The item of the current thread up to which everything was processed. */
  saidUpTo: z.string().optional(),
})
export type CodexSavedState = z.output<typeof CodexSavedState>
export type CodexSavedThread = CodexSavedState['threads'][number]
