import { z } from 'zod'
import type { MessageInfo } from './records.ts'
import type { OpenCodeServer } from './server.ts'

/** Saved state: needed to find the program and its conversation again. */
export const OpenCodeSavedState = z.object({
  /** Port of its HTTP server on 127.0.0.1. */
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
type OpenCodeConversation = OpenCodeSavedState['conversations'][number]

/** A message in an earlier conversation is still searched for. */
const REMEMBERED = 8

export type OpenCodeConversations = ReturnType<typeof createConversations>

/** Conversations this agent had in its pane; the last one is current. */
export function createConversations(server: OpenCodeServer, before: readonly OpenCodeConversation[]) {
  let own = [...before]
  /** Subagents' conversations: not the agent's own. */
  const foreign = new Set<string>()

  const find = (id: string) => own.find((conversation) => conversation.id === id)

  function add(conversation: OpenCodeConversation) {
    own = [...own.filter(({ id }) => id !== conversation.id), conversation].slice(-REMEMBERED)
  }

  return {
    get all(): readonly OpenCodeConversation[] {
      return own
    },
    get present(): OpenCodeConversation | undefined {
      return own.at(-1)
    },
    find,
    isSubagent: (id: string) => foreign.has(id),
    add,
    created(id: string, parentId: string | undefined) {
      if (parentId !== undefined) foreign.add(id)
    },
    /**
     * Assigns a user message to its conversation. A person may have begun or opened another one in the pane,
     * where the agent then continues. Returns whether it was adopted just now.
     */
    async adoptIfNew(info: MessageInfo): Promise<boolean> {
      if (foreign.has(info.sessionID) || find(info.sessionID) !== undefined) return false
      const conversation = await server.conversation(info.sessionID)
      if (conversation.parentID !== undefined) {
        foreign.add(conversation.id)
        return false
      }
      const since = Math.max(conversation.time.created, info.time.created)
      add({ id: conversation.id, since })
      return true
    },
  }
}
