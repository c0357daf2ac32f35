import { z } from 'zod'

/** What is needed to find the program and its conversation again. */
export const Kept = z.object({
  /** Of its app-server: a unix socket. */
  socket: z.string(),
  /** Milliseconds. */
  launchedAt: z.number(),
  /** Those this agent had in its pane and that had a turn, the present one last: a message may stand in an earlier one. */
  threads: z.array(
    z.object({
      id: z.string(),
      /** Milliseconds. What was said before is not this agent's word: a fork copies, and a person may open any thread. */
      since: z.number(),
      /** The file that Codex keeps it in. */
      rollout: z.string().optional(),
    }),
  ),
  /** The item of the present thread up to which everything was said to the engine. */
  saidUpTo: z.string().optional(),
})
export type Kept = z.output<typeof Kept>
export type KeptThread = Kept['threads'][number]
