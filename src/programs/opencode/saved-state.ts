import { z } from 'zod'

/** Saved state: needed to find the program and its conversation again. */
export const OpenCodeSavedState = z.object({
  /** Address of its HTTP server. */
  port: z.int(),
  /** Conversations this agent had in its pane, the current one last: a message may be in an earlier one. */
  conversations: z.array(
    z.object({
      id: z.string(),
      /** Milliseconds. Earlier messages are not this agent's: a fork copies them. */
      since: z.number(),
    }),
  ),
  /** The message up to which everything was processed. */
  saidUpTo: z.string().optional(),
  /** Boot time by the clock that gave that message its id. */
  bootedAt: z.number().optional(),
})
export type OpenCodeSavedState = z.output<typeof OpenCodeSavedState>
export type OpenCodeConversation = OpenCodeSavedState['conversations'][number]
