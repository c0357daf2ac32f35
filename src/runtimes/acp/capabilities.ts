import { type ClientContext, methods, PROTOCOL_VERSION } from '@agentclientprotocol/sdk'
import { z } from 'zod'

const Greeting = z.object({
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

/** The agent's capabilities that we use. */
export interface Capabilities {
  readonly title: string
  /** Resumes a conversation and replays it. */
  readonly loads: boolean
  /** Resumes a conversation without replaying it. */
  readonly resumes: boolean
  readonly mcpOverHttp: boolean
  /** Accepts a role as part of its system prompt. */
  readonly systemPrompt: boolean
  /** Accepts text during a running turn. */
  readonly steering: boolean
}

export async function greet(agent: ClientContext, version: string): Promise<Capabilities> {
  const answer: unknown = await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientInfo: { name: 'orchub', version },
    // No files and no terminals: the agent has its own. Compactions and notices are kept apart from the
    // model's text (C4).
    clientCapabilities: { session: { compaction: {}, notices: {} } },
  })
  const greeting = Greeting.parse(answer)
  if (greeting.protocolVersion !== PROTOCOL_VERSION) {
    throw new Error(`it speaks ACP version ${greeting.protocolVersion}; Orchub needs ${PROTOCOL_VERSION}`)
  }
  const { agentInfo, agentCapabilities: can, _meta } = greeting
  return {
    title: agentInfo == null ? 'an agent without a name' : `${agentInfo.name} ${agentInfo.version}`,
    loads: can?.loadSession === true,
    resumes: isOffered(can?.sessionCapabilities?.resume),
    mcpOverHttp: can?.mcpCapabilities?.http === true,
    systemPrompt: isOffered(can?.sessionCapabilities?.systemPrompt),
    steering: _meta?.steering.supported === true,
  }
}
