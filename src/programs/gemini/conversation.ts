import { z } from 'zod'
import type { SessionPort } from '../../runtimes/runtime.ts'
import { createStateSaver } from '../agent-output.ts'
import type { FollowerLog } from '../line-follower.ts'
import { searchTranscripts, transcriptFields, withTranscript } from '../transcript-path.ts'
import type { GeminiHookEvent } from './hooks.ts'
import { followTranscript, type GeminiRecord, type GeminiTranscript, searchTranscript } from './transcript.ts'

/**
 * Saved state: needed to follow the program after a restart of the service, and to resume its conversation.
 */
export const GeminiSavedState = z.object({
  sessionId: z.string(),
  /** Milliseconds. Older records of a transcript precede this agent; 0 in one that it began. */
  since: z.number(),
  ...transcriptFields,
  /** Messages in the transcript without an answer yet. */
  unread: z.array(z.string()).default([]),
  /** True after its first prompt; before that there is no conversation to resume. */
  isPrompted: z.boolean().default(false),
})
export type GeminiSavedState = z.output<typeof GeminiSavedState>

interface ConversationOptions {
  readonly savedState: GeminiSavedState
  readonly port: SessionPort
  readonly log: FollowerLog
  onRecord(record: GeminiRecord): void
  onForgotten(ids: readonly string[]): void
}

/** The program's current conversation: follows its transcript, and saves the position. */
export function followConversation(options: ConversationOptions) {
  const { port, log, onRecord, onForgotten } = options
  let savedState = options.savedState
  let transcript: GeminiTranscript | undefined
  let closed = false
  const saved = createStateSaver(port, log, () => {
    const position = transcript?.position() ?? savedState.position
    const unread = [...(transcript?.unread ?? savedState.unread)]
    savedState = { ...savedState, ...(position && { position }), unread }
    return savedState
  })

  function open(file: string) {
    if (transcript?.file === file || closed) return
    const before = savedState
    savedState = withTranscript(before, file)
    if (savedState !== before) savedState = { ...savedState, unread: [] }
    void transcript?.close()
    const { since, position: from, unread } = savedState
    transcript = followTranscript({
      ...{ file, from, unread, since, port, log },
      ...{ onRecord, onForgotten, onProgress: saved.soon },
    })
    saved.soon()
  }

  if (savedState.transcript !== undefined) open(savedState.transcript)

  return {
    /** Every hook names the conversation; a person may have begun or opened another one in the pane. */
    noteConversation(event: GeminiHookEvent) {
      if (event.hook_event_name === 'SessionEnd') return
      // The transcript it names at that point is not the one it will use.
      if (event.hook_event_name === 'SessionStart' && event.source === 'resume') return
      if (event.session_id !== savedState.sessionId) {
        const isNew = event.hook_event_name === 'SessionStart' && event.source === 'clear'
        const since = isNew ? 0 : Date.now()
        savedState = { ...savedState, sessionId: event.session_id, since, isPrompted: false }
      }
      open(event.transcript_path)
    },
    /** From now on there is a conversation to resume. */
    prompted() {
      if (savedState.isPrompted) return
      savedState = { ...savedState, isPrompted: true }
      saved.soon()
    },
    settled: async () => transcript?.settled(),
    /** Finds messages that the model was shown, in this conversation or an earlier one. */
    async search(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
      await transcript?.settled()
      return await searchTranscripts(savedState, ids, searchTranscript)
    },
    async close() {
      await transcript?.close()
      await saved.close()
      closed = true
    },
  }
}
