import type { ClientContext } from '@agentclientprotocol/sdk'
import type { AgentStart, Credentials } from '../runtime.ts'
import { type Capabilities, greet } from './capabilities.ts'
import { type Choice, choose } from './choices.ts'
import { type Conversation, openConversation } from './conversation.ts'
import type { BuiltIn } from './programs.ts'
import type { AcpSettings } from './settings.ts'
import { toolsFor } from './tools.ts'

export interface OpeningOrder {
  readonly connection: ClientContext
  readonly agent: Pick<AgentStart, 'cwd' | 'prompt'>
  readonly settings: AcpSettings
  readonly builtIn: BuiltIn | undefined
  readonly credentials: Credentials
  readonly bin: string
  readonly version: string
  readonly sessionId: string | undefined
  beforeLoading(): Promise<void>
  within<T>(answer: Promise<T>, what: string): Promise<T>
}

/** From a fresh connection to a session that can take turns. */
export async function open(
  order: OpeningOrder,
): Promise<{ capabilities: Capabilities; conversation: Conversation }> {
  const { connection, agent, within } = order
  const capabilities = await within(greet(connection, order.version), 'initialize')
  const conversation = await openConversation({
    agent: connection,
    capabilities,
    cwd: agent.cwd,
    prompt: agent.prompt,
    sessionId: order.sessionId,
    beforeLoading: order.beforeLoading,
    tools: toolsFor({ ...order, capabilities }),
    within,
  })
  for (const choice of choicesOf(order)) {
    const { sessionId, opened } = conversation
    await within(choose(connection, sessionId, opened, choice), `the choice of a ${choice.category}`)
  }
  return { capabilities, conversation }
}

function choicesOf({ settings, builtIn }: OpeningOrder): Choice[] {
  const choices: Choice[] = []
  const mode = settings.mode ?? builtIn?.mode
  if (mode !== undefined)
    choices.push({ category: 'mode', value: mode, isWanted: settings.mode !== undefined })
  if (settings.model !== undefined) choices.push({ category: 'model', value: settings.model, isWanted: true })
  return choices
}
