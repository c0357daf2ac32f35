import { z } from 'zod'

const Position = z.object({ inode: z.string(), offset: z.number(), mark: z.string() })

/** What is needed to follow the program again after a restart of the service, and to take up its conversation. */
export const Kept = z.object({
  sessionId: z.string(),
  /** Where it keeps `sessions/` and `projects/`: the user's own folder, only read. */
  configFolder: z.string(),
  /**
   * The session that this agent began, whose transcript holds no words but its own. Nothing there is measured by the
   * clock: once that is set back, all it says would count as said before its time.
   */
  begun: z.string().optional(),
  /** Milliseconds. In the transcript of any other session, older records are of a time before this agent. */
  since: z.number(),
  /** Known from the first hook on. */
  transcript: z.string().optional(),
  /** Of conversations that a person cleared away in the pane: a message may stand in one of them. */
  earlier: z.array(z.string()).default([]),
  /** Up to where everything in the transcript was said to the engine. */
  position: Position.optional(),
  /** Of the process that `sessions/` knows it by: the program's own, or that of a wrapper's child. */
  statusFile: z.string().optional(),
  /** As the program named it at its start; `[1m]` is a larger window. */
  model: z.string().optional(),
  /** Turns that were taken back before the model saw them, to be given again. */
  withdrawn: z
    .array(z.object({ text: z.string(), ids: z.array(z.string()), record: z.string().optional() }))
    .default([]),
  /** A turn that its hook has shown, and its transcript not yet: it may still be taken back. */
  unrecorded: z.string().optional(),
})
export type Kept = z.output<typeof Kept>
