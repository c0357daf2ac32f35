import { setTimeout as sleep } from 'node:timers/promises'
import type { SessionState } from '../../base/agent.ts'
import {
  cancelledResult,
  type DeliveryResult,
  type MessageLocation,
  type SessionPort,
  type Turn,
} from '../../runtimes/runtime.ts'
import { holdsTurn, locateIn, messageIdsIn } from '../message-evidence.ts'
import type { ProgramSession } from '../program.ts'
import { createSeenIds } from '../seen-ids.ts'
import type { OpenCodeActivity } from './activity.ts'
import type { OpenCodeConversations } from './conversations.ts'
import { userText } from './records.ts'
import { type OpenCodeServer, ServerError } from './server.ts'

/** A message is in the conversation within milliseconds; this allows for a machine under load. */
const EVIDENCE_MS = 10_000
const STOP_MS = 10_000
const CONNECTED: ReadonlySet<SessionState> = new Set(['idle', 'busy', 'waiting_input'])

interface OpenCodeDeliverOptions {
  readonly server: OpenCodeServer
  readonly conversations: OpenCodeConversations
  readonly activity: OpenCodeActivity
  readonly prompts: Prompts
  /** When everything sent by an earlier connection is certainly in the conversation. */
  settled(): Promise<unknown>
}

/** Delivers text to the agent without the pane's input box, so that a person's draft stays there. */
export function createDelivery(
  options: OpenCodeDeliverOptions,
): Pick<ProgramSession, 'deliver' | 'locate' | 'notice' | 'interrupt'> {
  const { server, conversations, activity, prompts } = options
  /** Number of deliveries whose result is not known yet. */
  let unanswered = 0

  async function deliver(turn: Turn, signal?: AbortSignal): Promise<DeliveryResult> {
    if (signal?.aborted) return cancelledResult(signal)
    const conversation = conversations.present
    if (activity.state !== 'idle' || conversation === undefined)
      return { state: 'queued', evidence: `opencode is ${activity.state}` }
    const expectation = prompts.expect(turn)
    unanswered += 1
    try {
      const failure = await server.prompt(conversation.id, turn.text, false).then(
        () => undefined,
        (error: unknown) => error,
      )
      if (failure instanceof ServerError && failure.kind !== 'lost')
        return { state: 'queued', evidence: `opencode rejected it: ${failure.message}` }
      const messageId =
        (await Promise.race([expectation.found, sleep(EVIDENCE_MS, undefined, { ref: false })])) ??
        (await findTurn(turn, expectation.isNews).catch(() => undefined))
      if (messageId !== undefined) return { state: 'submitted', evidence: evidenceOf(messageId) }
      const why = failure instanceof Error ? `: ${failure.message}` : ''
      return { state: 'uncertain', evidence: `opencode does not show it in its conversation${why}` }
    } finally {
      unanswered -= 1
      expectation.forget()
    }
  }

  /** The user messages of all conversations of this agent, newest first. */
  async function* userMessages() {
    for (const { id } of conversations.all.toReversed()) {
      for await (const page of server.pages(id)) {
        for (const message of page.toReversed()) if (message.info.role === 'user') yield message
      }
    }
  }

  async function findTurn(turn: Turn, isNews: (id: string) => boolean): Promise<string | undefined> {
    for await (const message of userMessages()) {
      if (isNews(message.info.id) && holdsTurn(userText(message), turn)) return message.info.id
    }
    return undefined
  }

  async function search(ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>()
    const missing = new Set(ids)
    if (missing.size === 0) return found
    for await (const message of userMessages()) {
      for (const id of messageIdsIn(userText(message)).filter((id) => missing.delete(id)))
        found.set(id, evidenceOf(message.info.id))
      if (missing.size === 0) break
    }
    return found
  }

  async function lookElsewhere(): Promise<MessageLocation> {
    const settled = options.settled()
    await settled
    if (options.settled() !== settled) return { at: 'unknown', evidence: 'lost the connection to opencode' }
    if (!CONNECTED.has(activity.state)) return { at: 'unknown', evidence: `opencode is ${activity.state}` }
    if (unanswered > 0)
      return { at: 'unknown', evidence: 'opencode has not confirmed yet that it accepted the message' }
    return { at: 'absent', evidence: "it is in none of this agent's conversations" }
  }

  return {
    deliver,
    locate: (ids) => locateIn(ids, search, lookElsewhere),
    /**
     * A running turn includes it in its next step; otherwise it waits in the conversation for the next turn.
     */
    async notice(text) {
      const conversation = conversations.present
      if (conversation !== undefined) await server.prompt(conversation.id, text, true)
    },
    async interrupt() {
      const conversation = conversations.present
      if (activity.state === 'idle') return { stopped: true, evidence: 'it was idle' }
      if (conversation === undefined) return { stopped: false, evidence: `opencode is ${activity.state}` }
      try {
        await server.abort(conversation.id)
      } catch (error) {
        return { stopped: false, evidence: `opencode rejected the abort: ${(error as Error).message}` }
      }
      const stopped = await activity.idleWithin(STOP_MS)
      return { stopped, evidence: `opencode was ${activity.state} after the abort` }
    },
  }
}

const evidenceOf = (messageId: string) => `it is ${messageId} in the conversation`

interface Expectation {
  readonly turn: Turn
  /**
   * Whether a message may contain it: a turn without ids is recognised by its text, which may occur earlier.
   */
  isNews(messageId: string): boolean
  found(messageId: string): void
}

/** opencode sends a message again with each change. */
const REMEMBERED = 200

type Prompts = ReturnType<typeof createPrompts>

/** Which of our messages are in the conversation, and which of those the model has begun to answer. */
export function createPrompts(port: Pick<SessionPort, 'onEvidence'>) {
  const expected = new Set<Expectation>()
  /** By the id of the user message in the conversation. */
  const unread = new Map<string, { conversation: string; ids: string[] }>()
  const isNew = createSeenIds(REMEMBERED)
  /** Highest id over all messages; ids ascend with time. */
  let newest = ''

  return {
    noteId(messageId: string) {
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
    recorded(messageId: string, conversation: string, text: string): boolean {
      if (!isNew(messageId)) return false
      const ids = messageIdsIn(text)
      if (ids.length > 0) {
        unread.set(messageId, { conversation, ids })
        port.onEvidence(ids, 'submitted', `it is ${messageId} in the conversation ${conversation}`)
      }
      const matching = [...expected].filter(({ turn, isNews }) => isNews(messageId) && holdsTurn(text, turn))
      for (const expectation of matching) expectation.found(messageId)
      return matching.length > 0
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
