import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const NAME = 'orchub'
const ROLE_FILE = 'role.md'

/** Under load, the program notices the end of a hook seconds late. */
const HOOK_MS = 60_000

const HOOKS = [
  'SessionStart',
  'SessionEnd',
  'BeforeAgent',
  'AfterAgent',
  'BeforeTool',
  'AfterTool',
  'Notification',
]

/**
 * The program's own extension mechanism: role, command server and hooks in one folder. The role is part of
 * the context of every request, also after a compression or a resume.
 */
export async function writeExtension(
  home: string,
  { url, role }: { url: string; role: string },
): Promise<void> {
  const folder = join(home, 'extensions', NAME)
  const json = (value: unknown) => `${JSON.stringify(value, undefined, 2)}\n`
  await mkdir(join(folder, 'hooks'), { recursive: true })
  await writeFile(join(folder, ROLE_FILE), withoutImports(role))
  await writeFile(join(folder, 'gemini-extension.json'), json(manifestOf(url)))
  await writeFile(join(folder, 'hooks', 'hooks.json'), json(hooksOf()))
  await writeFile(join(home, 'policies', `${NAME}.toml`), POLICY)
}

function manifestOf(url: string) {
  return {
    name: NAME,
    version: '1.0.0',
    description: "The agent's team.",
    contextFileName: ROLE_FILE,
    mcpServers: { orc: { httpUrl: `${url}/mcp`, headers: { Authorization: 'Bearer $ORC_TOKEN' } } },
  }
}

function hooksOf() {
  const hook = { type: 'command', name: NAME, command: '"$ORC_BIN" hook', timeout: HOOK_MS }
  return { hooks: Object.fromEntries(HOOKS.map((event) => [event, [{ hooks: [hook] }]])) }
}

/** The team's rules, not a dialog, decide what an agent may send to the service. */
const POLICY = `\
[[rule]]
mcpName = "orc"
toolName = "*"
decision = "allow"
priority = 100
`

/** In a context file, `@name` is replaced by that file; an invisible joiner after the sign prevents it. */
function withoutImports(text: string): string {
  return text.replace(/(^|\s)@(?=\S)/g, '$1@\u2060')
}
