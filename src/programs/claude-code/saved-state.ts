import { z } from 'zod'

const Position = z.object({ inode: z.string(), offset: z.number(), mark: z.string() })

/**
 * Saved state: needed to follow the program after a restart of the service, and to resume its conversation.
 */
export const ClaudeSavedState = z.object({
  sessionId: z.string(),
  /** Folder of `sessions/` and `projects/`: the user's own, only read. */
  configFolder: z.string(),
  /**
   * The session that this agent began, so all text in its transcript is its own. Its times are not compared:
   * after the clock is set back, everything would seem older than the agent.
   */
  begun: z.string().optional(),
  /** Milliseconds. In transcripts of other sessions, older records precede this agent. */
  since: z.number(),
  /** Known from the first hook on. */
  transcript: z.string().optional(),
  /** Conversations that a person cleared in the pane: a message may be in one of them. */
  earlier: z.array(z.string()).default([]),
  /** Position up to which the transcript was processed. */
  position: Position.optional(),
  /** The pid under which `sessions/` lists it: the program's own, or that of a wrapper's child. */
  statusFile: z.string().optional(),
  /** As the program named it at its start; `[1m]` means a larger window. */
  model: z.string().optional(),
  /** Turns withdrawn before the model saw them, to be delivered again. */
  withdrawn: z
    .array(z.object({ text: z.string(), ids: z.array(z.string()), record: z.string().optional() }))
    .default([]),
  /** A turn that its hook has shown but its transcript has not: it may still be withdrawn. */
  unrecorded: z.string().optional(),
})
export type ClaudeSavedState = z.output<typeof ClaudeSavedState>
