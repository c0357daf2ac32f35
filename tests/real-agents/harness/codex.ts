import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PrepareProgram } from './home.ts'

/** Codex warns of a model that is in no catalog, over ACP even in the agent's text. This catalog is the user's own. */
const CATALOG = {
  models: [
    {
      slug: 'scripted',
      display_name: 'Scripted',
      description: 'Answers by a play.',
      default_reasoning_level: 'medium',
      supported_reasoning_levels: [{ effort: 'medium', description: 'The only one' }],
      shell_type: 'shell_command',
      visibility: 'list',
      supported_in_api: true,
      priority: 1,
      base_instructions: 'You are a coding agent.',
      supports_reasoning_summaries: true,
      support_verbosity: false,
      truncation_policy: { mode: 'tokens', limit: 10_000 },
      supports_parallel_tool_calls: true,
      context_window: 200_000,
      experimental_supported_tools: [],
      // Otherwise MCP tools hide until the model searches for them.
      supports_search_tool: false,
    },
  ],
}

export const prepareCodex: PrepareProgram = async ({ folder, cwd, modelUrl, key }) => {
  await mkdir(join(folder, '.codex'), { recursive: true })
  const catalog = join(folder, '.codex', 'models.json')
  await writeFile(catalog, JSON.stringify(CATALOG))
  const config = `\
model = "scripted"
model_provider = "scripted"
model_catalog_json = ${JSON.stringify(catalog)}
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[model_providers.scripted]
name = "Scripted model"
base_url = "${modelUrl}/v1"
env_key = "SCRIPTED_MODEL_KEY"
wire_api = "responses"

[projects.${JSON.stringify(cwd)}]
trust_level = "trusted"
`
  await writeFile(join(folder, '.codex', 'config.toml'), config)
  return { SCRIPTED_MODEL_KEY: key }
}
