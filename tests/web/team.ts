import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PLAYER_PATTERNS } from '../../src/cli/commands/service/play.ts'
import { type Client, createClient } from '../../src/client/client.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { type Orchub, ownCommand, startOrchub } from '../../src/main.ts'
import type { ScriptSettings } from '../../src/runtimes/script.ts'

export interface TestTeam {
  readonly url: string
  readonly client: Client
  readonly orchub: Orchub
  stateOf(agent: string): Promise<string | undefined>
  /** A link that signs in as the operator, or as that person. */
  link(person?: string): Promise<string>
  close(): Promise<void>
}

type Script = ScriptSettings['script']

/** A script must have at least one rule. */
const SILENT = [{ on: { text: 'a text that is never sent' }, after_ms: 0, say: 'Nothing.' }]

/** A complete service with agents in real terminals, each playing a script. */
export async function startTeam(
  scripts: Record<string, { script: Script; more?: object }>,
  input: Partial<ConfigInput> = {},
): Promise<TestTeam> {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-web-'))
  const socket = `orc-web-${process.pid}-${Math.random().toString(36).slice(2, 8)}`
  mkdirSync(join(folder, 'scripts'))
  const agents = Object.fromEntries(
    Object.entries(scripts).map(([name, { script, more }]) => {
      const file = join(folder, 'scripts', `${name}.json`)
      writeFileSync(file, JSON.stringify({ script: script.length === 0 ? SILENT : script }))
      return [
        name,
        {
          program: 'any',
          with: { command: [ownCommand(), 'play', file], patterns: { ...PLAYER_PATTERNS } },
          ...more,
        },
      ]
    }),
  )
  const config = defineConfig(
    { ...input, agents: { ...agents, ...input.agents }, tmux: { socket } } as ConfigInput,
    {
      env: { ORC_HOME: folder },
    },
  )
  const orchub: Orchub = await startOrchub({ config, port: 0 })
  const { url, operatorToken } = orchub
  const operator = () => createClient({ url, token: operatorToken })

  return {
    ...{ url, orchub, client: operator() },
    stateOf: async (agent) => (await operator().agents()).agents.find(({ name }) => name === agent)?.session,
    async link(person) {
      const client =
        person === undefined
          ? operator()
          : createClient({
              url,
              token: (await operator().mintToken(person)).token,
            })
      return `${url}${(await client.mintLogin()).path}`
    },
    async close() {
      await orchub.close('end')
      spawnSync('tmux', ['-L', socket, 'kill-server'])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const say = (to: string, title: string, content: string) =>
  `<orc-command name="send_message" to="${to}" title="${title}">\n${content}\n</orc-command>`
