import { mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { AgentName } from '../../scripts/install-agents.ts'
import { startModelServer } from '../fakes/model-server/model-server.ts'
import { askOnce } from './harness/ask-once.ts'
import { prepareHome } from './harness/home.ts'
import { startHookServer } from './harness/hook-server.ts'

type Place = { folder: string; mcp: string }

/** Makes the MCP server known as `orc`, allows everything, and says how to ask once. */
type Prepare = (place: Place) => Promise<string[]>

async function change(file: string, more: object): Promise<void> {
  await writeFile(file, JSON.stringify({ ...JSON.parse(await readFile(file, 'utf8')), ...more }))
}

const claudeCode: Prepare = async ({ folder, mcp }) => {
  const config = join(folder, 'mcp.json')
  await writeFile(
    config,
    JSON.stringify({ mcpServers: { orc: { type: 'http', url: mcp, alwaysLoad: true } } }),
  )
  return ['--mcp-config', config, '--permission-mode', 'bypassPermissions', '-p']
}

const PROGRAMS: [AgentName, Prepare][] = [
  ['claude-code', claudeCode],
  ['claude-code-2.1.197', claudeCode],
  [
    'codex',
    async ({ mcp }) => {
      const free = '--dangerously-bypass-approvals-and-sandbox'
      return ['exec', '--json', '--skip-git-repo-check', free, '-c', `mcp_servers.orc.url="${mcp}"`]
    },
  ],
  [
    'gemini',
    async ({ folder, mcp }) => {
      const mcpServers = { orc: { httpUrl: mcp, trust: true } }
      await change(join(folder, 'home/.gemini/settings.json'), { mcpServers })
      return ['--approval-mode', 'yolo', '-p']
    },
  ],
  [
    'opencode',
    async ({ folder, mcp }) => {
      const more = {
        mcp: { orc: { type: 'remote', url: mcp, enabled: true } },
        permission: { bash: 'allow' },
      }
      await change(join(folder, 'home/.config/opencode/opencode.json'), more)
      return ['run', '--format', 'json']
    },
  ],
]

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

it.each(PROGRAMS)(
  '%s takes the scripted calls of an MCP tool and of its shell (issue 3, §5)',
  async (name, prepare) => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'orchub-tools-')))
    closing.push(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
    const mcp = await startHookServer()
    closing.push(mcp.close)
    const message = { to: 'bob', body: 'Two lines,\n"quoted" & <b>' }
    const model = await startModelServer({
      play: [
        { when: /begin/, reply: { text: 'Sending.', toolCalls: [{ mcp: 'send_message', input: message }] } },
        { toolResult: /queued for bob/, reply: { text: 'Looking.', toolCalls: [{ shell: 'expr 6 "*" 7' }] } },
        { toolResult: /\b42\b/, reply: { text: 'Both worked.' } },
      ],
    })
    closing.push(model.close)
    const cwd = join(folder, 'work')
    const key = 'sk-ant-fake-alice'
    const home = await prepareHome(name, { folder: join(folder, 'home'), cwd, modelUrl: model.url, key })
    const args = await prepare({ folder, mcp: `${mcp.url}/mcp` })

    expect(await askOnce(home, cwd, [...args, 'begin'])).toContain('Both worked.')
    expect(mcp.messages).toEqual([message])
  },
)
