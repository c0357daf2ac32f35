import { z } from 'zod'

const Position = z.object({ inode: z.string(), offset: z.number(), mark: z.string() })

/** What is needed to follow the program again after a restart of the service, and to take up its conversation. */
export const Kept = z.object({
  sessionId: z.string(),
  /** Milliseconds. Older records in a transcript are of a time before this agent; 0 in one that it began. */
  since: z.number(),
  /** Known from the first hook on. */
  transcript: z.string().optional(),
  /** Up to where everything in the transcript was said to the engine. */
  position: Position.optional(),
  /** Transcripts of conversations before this one: a message may stand there. */
  earlier: z.array(z.string()).default([]),
  /** Messages that stand in the transcript without an answer to them yet. */
  unread: z.array(z.string()).default([]),
  /** It was prompted at least once; before that there is no conversation to take up. */
  isPrompted: z.boolean().default(false),
})
export type Kept = z.output<typeof Kept>
