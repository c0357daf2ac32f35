import { type ClientContext, methods, RequestError } from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { Capabilities } from './capabilities.ts'
import { describeError, wantsLogin } from './failure.ts'
import type { Tools } from './tools.ts'

export interface ConversationOrder {
  readonly agent: ClientContext
  readonly capabilities: Capabilities
  readonly cwd: string
  readonly tools: Tools
  /** The role; given as a system prompt where the agent takes one. */
  readonly prompt: string
  /** Of the conversation to be taken up again. */
  readonly sessionId: string | undefined
  /** Some must not be taken up again too soon. */
  beforeLoading(): Promise<void>
  /** Puts an end to waiting for an answer. */
  within<T>(answer: Promise<T>, what: string): Promise<T>
}

export interface Conversation {
  readonly sessionId: string
  /** `loaded`: taken up again, and what was said before was replayed. `resumed`: taken up again unseen. */
  readonly how: 'new' | 'loaded' | 'resumed'
  /** What the agent said of the session: its modes, models, options. */
  readonly opened: unknown
  /** For people: how it went. */
  readonly note: string
}

const NewSession = z.looseObject({ sessionId: z.string().min(1) })

/**
 * Takes the kept conversation up again, or begins a new one. Loading comes first, since what it replays is the only
 * evidence of what the agent was given before. Not resumable is not fatal, but said.
 */
export async function openConversation(order: ConversationOrder): Promise<Conversation> {
  const { agent, capabilities, sessionId, within } = order
  const common = {
    cwd: order.cwd,
    ...order.tools,
    ...(capabilities.systemPrompt ? { systemPrompt: systemPrompt(order.prompt) } : {}),
  }
  const failures: string[] = []
  async function attempt(how: 'loaded' | 'resumed'): Promise<Conversation | undefined> {
    const method = how === 'loaded' ? methods.agent.session.load : methods.agent.session.resume
    try {
      const answer: unknown = await within(
        agent.request(method, { ...common, sessionId: sessionId! }),
        method,
      )
      return {
        sessionId: sessionId!,
        how,
        opened: answer,
        note: `conversation ${sessionId} was taken up again`,
      }
    } catch (error) {
      // It would want a login for a new one too; and no answer at all is none of "no such conversation".
      if (!(error instanceof RequestError) || wantsLogin(error)) throw error
      failures.push(describeError(error))
      return undefined
    }
  }

  if (sessionId !== undefined) {
    await order.beforeLoading()
    const again =
      (capabilities.loads ? await attempt('loaded') : undefined) ??
      (capabilities.resumes ? await attempt('resumed') : undefined)
    if (again !== undefined) return again
    if (failures.length === 0) failures.push('the agent cannot do that')
  }
  const answer = await within(agent.request(methods.agent.session.new, common), 'session/new')
  const opened = NewSession.parse(answer)
  const note =
    sessionId === undefined
      ? `conversation ${opened.sessionId} began`
      : `conversation ${sessionId} could not be taken up again (${failures.join('; ')}): ${opened.sessionId} began`
  return { sessionId: opened.sessionId, how: 'new', opened, note }
}

function systemPrompt(text: string) {
  return { mode: 'append', content: [{ type: 'text', text }] }
}
