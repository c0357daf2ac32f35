import type { Conversation } from './kept.ts'
import type { MessageInfo } from './records.ts'
import type { Server } from './server.ts'

/** A message that stands in an earlier conversation is still looked for. */
const REMEMBERED = 8

export type Conversations = ReturnType<typeof createConversations>

/** The conversations that people had with this agent in its pane. The last one is the present one. */
export function createConversations(server: Server, before: readonly Conversation[]) {
  let own = [...before]
  /** Of subagents: not the agent's own. */
  const foreign = new Set<string>()

  const find = (id: string) => own.find((conversation) => conversation.id === id)

  function add(conversation: Conversation) {
    own = [...own.filter(({ id }) => id !== conversation.id), conversation].slice(-REMEMBERED)
  }

  return {
    get all(): readonly Conversation[] {
      return own
    },
    get present(): Conversation | undefined {
      return own.at(-1)
    },
    find,
    isSubagent: (id: string) => foreign.has(id),
    add,
    created(id: string, parentId: string | undefined) {
      if (parentId !== undefined) foreign.add(id)
    },
    /**
     * Whose the conversation of this user's message is. A person may have begun or opened another one in the pane:
     * the agent goes on there. Says whether it was taken up just now.
     */
    async meet(info: MessageInfo): Promise<boolean> {
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
