import { z } from 'zod'

const Position = z.object({ inode: z.string(), offset: z.number(), mark: z.string() })

/**
 * Saved state: needed to follow the program after a restart of the service, and to resume its conversation.
 */
export const GeminiSavedState = z.object({
  sessionId: z.string(),
  /** Milliseconds. Older records of a transcript precede this agent; 0 in one that it began. */
  since: z.number(),
  /** Known from the first hook on. */
  transcript: z.string().optional(),
  /** Position up to which the transcript was processed. */
  position: Position.optional(),
  /** Transcripts of earlier conversations: a message may be there. */
  earlier: z.array(z.string()).default([]),
  /** Messages in the transcript without an answer yet. */
  unread: z.array(z.string()).default([]),
  /** True after its first prompt; before that there is no conversation to resume. */
  isPrompted: z.boolean().default(false),
})
export type GeminiSavedState = z.output<typeof GeminiSavedState>
