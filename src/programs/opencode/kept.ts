import { z } from 'zod'

/** What is needed to find the program and its conversation again. */
export const Kept = z.object({
  /** Of its HTTP server. */
  port: z.int(),
  /** Those this agent had in its pane, the present one last: a message may stand in an earlier one. */
  conversations: z.array(
    z.object({
      id: z.string(),
      /** Milliseconds. What was written before is not this agent's word: a fork copies old messages. */
      since: z.number(),
    }),
  ),
  /** The message up to which everything was said to the engine. */
  saidUpTo: z.string().optional(),
  /** When the machine was started, by the clock that gave that message its id. */
  bootedAt: z.number().optional(),
})
export type Kept = z.output<typeof Kept>
export type Conversation = Kept['conversations'][number]
