/**
 * Where the transcript of Claude Code or Gemini CLI is: the program chooses the path and names it as `transcript_path` in
 * every call of a hook. Orchub never computes it, but follows the file that the last hook named.
 */
import { z } from 'zod'
import { FilePosition } from './line-follower.ts'

/** Fields of the saved state of a program whose hooks name its transcript. */
export const transcriptFields = {
  /** Named by the last hook; undefined before the first one. */
  transcript: z.string().optional(),
  /** Position up to which the transcript was processed. */
  position: FilePosition.optional(),
  /** Transcripts of earlier conversations: a message may be in one of them. */
  earlier: z.array(z.string()).default([]),
}
const SavedTranscript = z.object(transcriptFields)
type SavedTranscript = z.output<typeof SavedTranscript>

const EARLIER_TRANSCRIPTS = 20

/** The state after a hook named this transcript: a person may have cleared, forked or opened a conversation in the pane. */
export function withTranscript<State extends SavedTranscript>(saved: State, file: string): State {
  if (saved.transcript === file) return saved
  const before = [...saved.earlier, saved.transcript].filter((one) => one !== undefined && one !== file)
  const earlier = [...new Set(before as string[])].slice(-EARLIER_TRANSCRIPTS)
  return { ...saved, transcript: file, position: undefined, earlier }
}

/**
 * Searches the transcripts, the earliest first, until every message is found. `search` returns the record of each message
 * that it finds in a file. Resolves with the evidence of each message found.
 */
export async function searchTranscripts(
  { earlier, transcript }: SavedTranscript,
  ids: readonly string[],
  search: (file: string, missing: ReadonlySet<string>) => Promise<ReadonlyMap<string, string>>,
): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const missing = new Set(ids)
  for (const file of transcript === undefined ? earlier : [...earlier, transcript]) {
    if (missing.size === 0) break
    for (const [id, record] of await search(file, missing)) {
      missing.delete(id)
      found.set(id, `it is in record ${record} of the transcript`)
    }
  }
  return found
}
