import type { Tool, ToolCall } from './play.ts'

/** The name of a tool of the MCP server `orc` in Claude Code, Gemini and opencode. */
const MCP_PREFIXES = ['mcp__orc__', 'mcp_orc_', 'orc_']

/** Codex puts it into a namespace, beside its own namespaces with tools of the same name. */
const MCP_NAMESPACE = 'mcp__orc'

const SHELLS: Record<string, (command: string, escalated: boolean) => object> = {
  Bash: (command) => ({ command, description: 'Runs a scripted command' }),
  exec_command: (cmd, escalated) => ({
    cmd,
    ...(escalated ? { sandbox_permissions: 'require_escalated', justification: 'May I?' } : {}),
  }),
  run_shell_command: (command) => ({ command, description: 'Runs a scripted command' }),
  bash: (command) => ({ command, description: 'Runs a scripted command' }),
}

/** The call under the name that the program offers, or undefined if it doesn't offer it. */
export function toolFor(call: ToolCall, tools: readonly Tool[]): (Tool & { input: object }) | undefined {
  if ('shell' in call) {
    const tool = tools.find(({ name }) => name in SHELLS)
    return tool && { ...tool, input: SHELLS[tool.name]!(call.shell, call.escalated ?? false) }
  }
  const tool = 'mcp' in call ? mcpTool(call.mcp, tools) : tools.find(({ name }) => name === call.name)
  return tool && { ...tool, input: call.input }
}

function mcpTool(wanted: string, tools: readonly Tool[]): Tool | undefined {
  return tools.find(({ name, namespace }) =>
    namespace === undefined
      ? MCP_PREFIXES.some((prefix) => name === `${prefix}${wanted}`)
      : namespace === MCP_NAMESPACE && name === wanted,
  )
}
