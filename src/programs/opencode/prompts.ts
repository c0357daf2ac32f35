import type { SessionPort, Turn } from '../../runtimes/runtime.ts'
import { holdsTurn, messageIdsIn } from '../message-ids.ts'

interface Expectation {
  readonly turn: Turn
  /**
   * Whether a message may contain it: a turn without ids is recognised by its text, which may occur earlier.
   */
  isNews(messageId: string): boolean
  found(messageId: string): void
}

/** A message appears again with each change. */
const REMEMBERED = 200

export type Prompts = ReturnType<typeof createPrompts>

/** Which of our messages are in the conversation, and which of those the model has begun to answer. */
export function createPrompts(port: Pick<SessionPort, 'onEvidence'>) {
  const expected = new Set<Expectation>()
  /** By the id of the user message in the conversation. */
  const unread = new Map<string, { conversation: string; ids: string[] }>()
  const known = new Set<string>()
  /** Highest id over all messages; ids ascend with time. */
  let newest = ''

  return {
    met(messageId: string) {
      if (messageId > newest) newest = messageId
    },
    /** Resolves with the id of the user message that contains the turn, once it is there. */
    expect(turn: Turn) {
      const { promise, resolve } = Promise.withResolvers<string>()
      const last = newest
      const isNews = (messageId: string) => turn.ids.length > 0 || messageId > last
      const expectation: Expectation = { turn, isNews, found: resolve }
      expected.add(expectation)
      return { found: promise, isNews, forget: () => void expected.delete(expectation) }
    },
    /** A user message is in the conversation. Returns whether it is the one just delivered. */
    stands(messageId: string, conversation: string, text: string): boolean {
      if (known.has(messageId)) return false
      known.add(messageId)
      if (known.size > REMEMBERED) known.delete(known.values().next().value!)
      const ids = messageIdsIn(text)
      if (ids.length > 0) {
        unread.set(messageId, { conversation, ids })
        port.onEvidence(ids, 'submitted', `it is ${messageId} in the conversation ${conversation}`)
      }
      const met = [...expected].filter(({ turn, isNews }) => isNews(messageId) && holdsTurn(text, turn))
      for (const expectation of met) expectation.found(messageId)
      return met.length > 0
    },
    /** Each request to the model carries everything before its answer. Ids ascend with time. */
    answerBegan(answerId: string, conversation: string, parentId: string) {
      for (const [messageId, { conversation: where, ids }] of unread) {
        if (where !== conversation || messageId > parentId) continue
        unread.delete(messageId)
        port.onEvidence(ids, 'read', `the model's answer ${answerId} began`)
      }
    },
  }
}
