import {
  type ClientContext,
  type McpServer,
  methods,
  PROTOCOL_VERSION,
  RequestError,
} from '@agentclientprotocol/sdk'
import { z } from 'zod'
import type { AgentCredentials, AgentStart } from '../runtime.ts'
import { describeError, wantsLogin } from './connection.ts'
import type { AcpSettings, BuiltIn } from './settings.ts'

interface OpenSessionOptions {
  readonly connection: ClientContext
  readonly agent: Pick<AgentStart, 'cwd' | 'prompt'>
  readonly settings: AcpSettings
  readonly builtIn: BuiltIn | undefined
  readonly credentials: AgentCredentials
  /** Path of our own executable, an MCP server on stdio. */
  readonly bin: string
  readonly version: string
  /** Id of the conversation to resume. */
  readonly sessionId: string | undefined
  /** Some conversations must not be resumed too soon. */
  beforeLoading(): Promise<void>
  /** Adds a timeout to a request. */
  within<T>(answer: Promise<T>, what: string): Promise<T>
}

/** Opens a session that accepts turns, over a new connection. */
export async function openSession(options: OpenSessionOptions) {
  const { connection, within } = options
  const capabilities = await within(initialize(connection, options.version), 'initialize')
  const conversation = await openConversation(options, capabilities)
  for (const choice of choicesOf(options)) {
    const { sessionId, opened } = conversation
    await within(setSessionOption(connection, sessionId, opened, choice), `setting the ${choice.category}`)
  }
  return { capabilities, conversation }
}

function choicesOf({ settings, builtIn }: OpenSessionOptions): SessionOption[] {
  const choices: SessionOption[] = []
  const mode = settings.mode ?? builtIn?.mode
  if (mode !== undefined)
    choices.push({ category: 'mode', value: mode, isWanted: settings.mode !== undefined })
  if (settings.model !== undefined) choices.push({ category: 'model', value: settings.model, isWanted: true })
  return choices
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
async function openConversation(
  options: OpenSessionOptions,
  capabilities: Capabilities,
): Promise<AcpConversation> {
  const { connection, agent, sessionId, within } = options
  const systemPrompt = { mode: 'append', content: [{ type: 'text', text: agent.prompt }] }
  const common = {
    cwd: agent.cwd,
    ...toolsFor(options, capabilities),
    ...(capabilities.systemPrompt ? { systemPrompt } : {}),
  }
  const failures: string[] = []
  async function attempt(how: 'loaded' | 'resumed'): Promise<AcpConversation | undefined> {
    const method = how === 'loaded' ? methods.agent.session.load : methods.agent.session.resume
    try {
      const answer: unknown = await within(
        connection.request(method, { ...common, sessionId: sessionId! }),
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
  const answer = await within(connection.request(methods.agent.session.new, common), 'session/new')
  const opened = NewSession.parse(answer)
  const note =
    sessionId === undefined
      ? `started conversation ${opened.sessionId}`
      : `conversation ${sessionId} could not be resumed (${failures.join('; ')}); started ${opened.sessionId}`
  return { sessionId: opened.sessionId, how: 'new', opened, note }
}

/** The fields of a session request that configure our tools. */
interface Tools {
  readonly mcpServers: McpServer[]
  readonly _meta?: Record<string, unknown>
}

/** The token travels through the agent's own pipe, never through a file or a command line. */
function toolsFor(
  { credentials: { url, token }, builtIn, bin }: OpenSessionOptions,
  capabilities: Capabilities,
): Tools {
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

const InitializeResponse = z.object({
  protocolVersion: z.number(),
  agentInfo: z.object({ name: z.string(), version: z.string() }).nullish().catch(undefined),
  agentCapabilities: z
    .object({
      loadSession: z.boolean().nullish(),
      mcpCapabilities: z.object({ http: z.boolean().nullish() }).nullish(),
      sessionCapabilities: z
        .object({ resume: z.unknown().optional(), systemPrompt: z.unknown().optional() })
        .nullish(),
    })
    .nullish(),
  _meta: z
    .object({ steering: z.object({ supported: z.boolean() }) })
    .nullish()
    .catch(undefined),
})

/** The mere presence of a capability counts; its value holds details. */
const isOffered = (capability: unknown) => typeof capability === 'object' && capability !== null

type Capabilities = Awaited<ReturnType<typeof initialize>>

/** Returns the agent's capabilities that we use. */
async function initialize(agent: ClientContext, version: string) {
  const answer: unknown = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: 'orchub', version },
    // No files and no terminals: the agent has its own. Compactions and notices are kept apart from the
    // model's text (C4).
    clientCapabilities: { session: { compaction: {}, notices: {} } },
  })
  const response = InitializeResponse.parse(answer)
  if (response.protocolVersion !== PROTOCOL_VERSION) {
    throw new Error(`it speaks ACP version ${response.protocolVersion}; Orchub needs ${PROTOCOL_VERSION}`)
  }
  const { agentInfo, agentCapabilities: can, _meta } = response
  return {
    title: agentInfo == null ? 'an agent without a name' : `${agentInfo.name} ${agentInfo.version}`,
    /** Resumes a conversation and replays it. */
    loads: can?.loadSession === true,
    /** Resumes a conversation without replaying it. */
    resumes: isOffered(can?.sessionCapabilities?.resume),
    mcpOverHttp: can?.mcpCapabilities?.http === true,
    /** Accepts a role as part of its system prompt. */
    systemPrompt: isOffered(can?.sessionCapabilities?.systemPrompt),
    /** Accepts text during a running turn. */
    steering: _meta?.steering.supported === true,
  }
}

const option = z.object({ value: z.string() })
const Offer = z.object({
  configOptions: z
    .array(
      z.object({
        id: z.string(),
        category: z.string().nullish(),
        type: z.string().nullish(),
        options: z.array(z.union([option, z.object({ options: z.array(option) })])).nullish(),
      }),
    )
    .nullish()
    .catch(undefined),
  modes: z
    .object({ availableModes: z.array(z.object({ id: z.string() })) })
    .nullish()
    .catch(undefined),
  // From before models became options; Gemini still uses it.
  models: z
    .object({ availableModels: z.array(z.object({ modelId: z.string() })) })
    .nullish()
    .catch(undefined),
})

interface SessionOption {
  readonly category: 'mode' | 'model'
  readonly value: string
  /** Named in the settings: fail if the agent does not offer it. */
  readonly isWanted: boolean
}

/** Sets an option named in the settings, out of those the agent offered when the session was opened. */
async function setSessionOption(
  agent: ClientContext,
  sessionId: string,
  opened: unknown,
  { category, value, isWanted }: SessionOption,
): Promise<void> {
  const setters = settersFor(category, Offer.safeParse(opened).data ?? {})
  const setter = setters.find(({ values }) => values.includes(value))
  if (setter !== undefined) return void (await setter.set(agent, sessionId, value))
  if (!isWanted) return
  const offered = setters.flatMap(({ values }) => values)
  throw new Error(
    offered.length === 0
      ? `it offers no choice of ${category}, but the settings have ${value}`
      : `it has no ${category} ${value}; it offers ${offered.slice(0, 20).join(', ')}`,
  )
}

interface OptionSetter {
  readonly values: readonly string[]
  set(agent: ClientContext, sessionId: string, value: string): Promise<unknown>
}

function settersFor(category: SessionOption['category'], offer: z.output<typeof Offer>): OptionSetter[] {
  const setters: OptionSetter[] = []
  for (const { id, category: itsCategory, options } of offer.configOptions ?? []) {
    if (itsCategory !== category || options == null) continue
    setters.push({
      values: options.flatMap((entry) =>
        'value' in entry ? [entry.value] : entry.options.map((each) => each.value),
      ),
      set: (agent, sessionId, value) =>
        agent.request(methods.agent.session.setConfigOption, { sessionId, configId: id, value }),
    })
  }
  if (category === 'mode' && offer.modes != null) {
    setters.push({
      values: offer.modes.availableModes.map((mode) => mode.id),
      set: (agent, sessionId, modeId) => agent.request(methods.agent.session.setMode, { sessionId, modeId }),
    })
  }
  if (category === 'model' && offer.models != null) {
    setters.push({
      values: offer.models.availableModels.map((model) => model.modelId),
      set: (agent, sessionId, modelId) => agent.request('session/set_model', { sessionId, modelId }),
    })
  }
  return setters
}
