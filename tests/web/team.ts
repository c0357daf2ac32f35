import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PLAYER_PATTERNS } from '../../src/cli/commands/service/play.ts'
import { type Client, createClient } from '../../src/client/client.ts'
import { type ConfigInput, defineConfig } from '../../src/config/config.ts'
import { type Orchub, ownCommand, startOrchub } from '../../src/main.ts'
import type { ScriptSettings } from '../../src/runtimes/script.ts'
import { createDaemon } from '../fakes/daemon.ts'
import { until } from './page.ts'

export interface TestTeam {
  readonly url: string
  readonly client: Client
  readonly orchub: Orchub
  /** A client with the token of an agent or a person. */
  clientOf(name: string): Promise<Client>
  stateOf(agent: string): Promise<string | undefined>
  /** A link that signs in as the operator, or as that person. */
  link(person?: string): Promise<string>
  close(): Promise<void>
}

type Script = ScriptSettings['script']

/** A script must have at least one rule. */
const SILENT = [{ on: { text: 'a text that is never sent' }, after_ms: 0, say: 'Nothing.' }]

/** A complete service with agents in real terminals, each playing a script. All of them are idle. */
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
  const client = createClient({ url, token: operatorToken })
  const clientOf = async (name: string) => createClient({ url, token: (await client.mintToken(name)).token })
  const stateOf = async (agent: string) =>
    (await client.agents()).agents.find(({ name }) => name === agent)?.session
  for (const name of Object.keys(scripts)) await until(async () => (await stateOf(name)) === 'idle')

  return {
    ...{ url, orchub, client, clientOf, stateOf },
    link: async (person) =>
      `${url}${(await (person === undefined ? client : await clientOf(person)).mintLogin()).path}`,
    async close() {
      await orchub.close('end')
      spawnSync('tmux', ['-L', socket, 'kill-server'])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export type TestDaemon = Awaited<ReturnType<typeof startDaemon>>

/** A service in a process of its own, which a test can kill; its agents run nowhere. */
export async function startDaemon(config: string) {
  const daemon = await createDaemon(config)
  await daemon.start()
  const client = (token = daemon.operatorToken()) => createClient({ url: daemon.url, token })
  return {
    ...daemon,
    client,
    async link(person?: string) {
      const token = person === undefined ? undefined : (await client().mintToken(person)).token
      return `${daemon.url}${(await client(token).mintLogin()).path}`
    },
  }
}

export const say = (to: string, title: string, content: string) =>
  `<orc-command name="send_message" to="${to}" title="${title}">\n${content}\n</orc-command>`
