import type { McpServer } from '@agentclientprotocol/sdk'
import type { Credentials } from '../runtime.ts'
import type { Capabilities } from './capabilities.ts'
import type { BuiltIn } from './programs.ts'

export interface ToolsOrder {
  readonly capabilities: Capabilities
  readonly credentials: Credentials
  readonly builtIn: BuiltIn | undefined
  /** Our own executable, an MCP server on stdio. */
  readonly bin: string
}

/** The part of a session's request that leads to our tools. */
export interface Tools {
  readonly mcpServers: McpServer[]
  readonly _meta?: Record<string, unknown>
}

/** The token goes through the agent's own pipe: neither into a file nor, by us or the agent, onto a command line. */
export function toolsFor({ capabilities, credentials: { url, token }, builtIn, bin }: ToolsOrder): Tools {
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
