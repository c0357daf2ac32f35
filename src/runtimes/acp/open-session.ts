import { type ClientContext, type McpServer, methods, RequestError } from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { AgentCredentials, AgentStart } from '../runtime.ts'
import { type Capabilities, greet } from './capabilities.ts'
import { describeError, wantsLogin } from './connection.ts'
import type { BuiltIn } from './programs.ts'
import { type SessionOption, setSessionOption } from './session-options.ts'
import type { AcpSettings } from './settings.ts'

interface OpeningOrder {
  readonly connection: ClientContext
  readonly agent: Pick<AgentStart, 'cwd' | 'prompt'>
  readonly settings: AcpSettings
  readonly builtIn: BuiltIn | undefined
  readonly credentials: AgentCredentials
  readonly bin: string
  readonly version: string
  readonly sessionId: string | undefined
  beforeLoading(): Promise<void>
  within<T>(answer: Promise<T>, what: string): Promise<T>
}

/** From a fresh connection to a session that accepts turns. */
export async function openSession(
  options: OpeningOrder,
): Promise<{ capabilities: Capabilities; conversation: AcpConversation }> {
  const { connection, agent, within } = options
  const capabilities = await within(greet(connection, options.version), 'initialize')
  const conversation = await openConversation({
    agent: connection,
    capabilities,
    cwd: agent.cwd,
    prompt: agent.prompt,
    sessionId: options.sessionId,
    beforeLoading: options.beforeLoading,
    tools: toolsFor({ ...options, capabilities }),
    within,
  })
  for (const choice of choicesOf(options)) {
    const { sessionId, opened } = conversation
    await within(setSessionOption(connection, sessionId, opened, choice), `setting the ${choice.category}`)
  }
  return { capabilities, conversation }
}

function choicesOf({ settings, builtIn }: OpeningOrder): SessionOption[] {
  const choices: SessionOption[] = []
  const mode = settings.mode ?? builtIn?.mode
  if (mode !== undefined)
    choices.push({ category: 'mode', value: mode, isWanted: settings.mode !== undefined })
  if (settings.model !== undefined) choices.push({ category: 'model', value: settings.model, isWanted: true })
  return choices
}

interface ConversationOrder {
  readonly agent: ClientContext
  readonly capabilities: Capabilities
  readonly cwd: string
  readonly tools: Tools
  /** The role, used as the system prompt if the agent accepts one. */
  readonly prompt: string
  /** Id of the conversation to resume. */
  readonly sessionId: string | undefined
  /** Some conversations must not be resumed too soon. */
  beforeLoading(): Promise<void>
  /** Adds a timeout to a request. */
  within<T>(answer: Promise<T>, what: string): Promise<T>
}

interface AcpConversation {
  readonly sessionId: string
  /** `loaded`: resumed with a replay. `resumed`: resumed without one. */
  readonly how: 'new' | 'loaded' | 'resumed'
  /** The agent's session data: modes, models, options. */
  readonly opened: unknown
  /** Result in words, for people. */
  readonly note: string
}

const NewSession = z.looseObject({ sessionId: z.string().min(1) })

/**
 * Resumes the saved conversation, or starts a new one. Loading comes first, since its replay is the only
 * evidence of what the agent received before. Failing to resume is not fatal, but reported.
 */
async function openConversation(options: ConversationOrder): Promise<AcpConversation> {
  const { agent, capabilities, sessionId, within } = options
  const common = {
    cwd: options.cwd,
    ...options.tools,
    ...(capabilities.systemPrompt ? { systemPrompt: systemPrompt(options.prompt) } : {}),
  }
  const failures: string[] = []
  async function attempt(how: 'loaded' | 'resumed'): Promise<AcpConversation | undefined> {
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
        note: `resumed conversation ${sessionId}`,
      }
    } catch (error) {
      // A new conversation would need the same login; and a timeout does not mean "no such conversation".
      if (!(error instanceof RequestError) || wantsLogin(error)) throw error
      failures.push(describeError(error))
      return undefined
    }
  }

  if (sessionId !== undefined) {
    await options.beforeLoading()
    const again =
      (capabilities.loads ? await attempt('loaded') : undefined) ??
      (capabilities.resumes ? await attempt('resumed') : undefined)
    if (again !== undefined) return again
    if (failures.length === 0) failures.push('the agent does not support it')
  }
  const answer = await within(agent.request(methods.agent.session.new, common), 'session/new')
  const opened = NewSession.parse(answer)
  const note =
    sessionId === undefined
      ? `started conversation ${opened.sessionId}`
      : `conversation ${sessionId} could not be resumed (${failures.join('; ')}); started ${opened.sessionId}`
  return { sessionId: opened.sessionId, how: 'new', opened, note }
}

function systemPrompt(text: string) {
  return { mode: 'append', content: [{ type: 'text', text }] }
}

interface ToolsOrder {
  readonly capabilities: Capabilities
  readonly credentials: AgentCredentials
  readonly builtIn: BuiltIn | undefined
  /** Path of our own executable, an MCP server on stdio. */
  readonly bin: string
}

/** The fields of a session request that configure our tools. */
interface Tools {
  readonly mcpServers: McpServer[]
  readonly _meta?: Record<string, unknown>
}

/** The token travels through the agent's own pipe, never through a file or a command line. */
function toolsFor({ capabilities, credentials: { url, token }, builtIn, bin }: ToolsOrder): Tools {
  const http = { type: 'http' as const, url: `${url}/mcp` }
  if (builtIn?.takesClaudeOptions) {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: Claude fills it in from its environment.
    const orc = { ...http, headers: { Authorization: 'Bearer ${ORC_TOKEN}' }, alwaysLoad: true }
    return { mcpServers: [], _meta: { claudeCode: { options: { mcpServers: { orc } } } } }
  }
  if (capabilities.mcpOverHttp) {
    const headers = [{ name: 'Authorization', value: `Bearer ${token}` }]
    return { mcpServers: [{ ...http, name: 'orc', headers }] }
  }
  const env = [
    { name: 'ORC_URL', value: url },
    { name: 'ORC_TOKEN', value: token },
  ]
  return { mcpServers: [{ name: 'orc', command: bin, args: ['mcp'], env }] }
}
