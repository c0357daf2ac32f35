import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PLAYER_PATTERNS } from '../../src/cli/play.ts'
import { type Client, createClient } from '../../src/client/client.ts'
import { type ConfigInput, defineConfig } from '../../src/config.ts'
import { type Orchub, ownCommand, startOrchub } from '../../src/main.ts'
import type { ScriptSettings } from '../../src/runtimes/script.ts'

export interface RoomTeam {
  readonly url: string
  readonly client: Client
  readonly orchub: Orchub
  /** A link that signs in as the operator, or as that person. */
  link(person?: string): Promise<string>
  /** The service dies and is started again, at the same port and with the same store. */
  restart(): Promise<void>
  /** The same in two steps. */
  stop(): Promise<void>
  start(): Promise<void>
  close(): Promise<void>
}

type Script = ScriptSettings['script']

/** A whole service with agents in real terminals, each of which plays a script. */
export async function startTeam(
  scripts: Record<string, { script: Script; more?: object }>,
  input: Partial<ConfigInput> = {},
): Promise<RoomTeam> {
  const folder = mkdtempSync(join(tmpdir(), 'orchub-web-'))
  const socket = `orc-web-${process.pid}-${Math.random().toString(36).slice(2, 8)}`
  mkdirSync(join(folder, 'scripts'))
  const agents = Object.fromEntries(
    Object.entries(scripts).map(([name, { script, more }]) => {
      const file = join(folder, 'scripts', `${name}.json`)
      writeFileSync(file, JSON.stringify({ script }))
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
  let port = 0
  let orchub: Orchub | undefined

  async function start() {
    orchub = await startOrchub({ config, port })
    port = Number(new URL(orchub.url).port)
  }
  async function stop() {
    await orchub?.close('leave')
    orchub = undefined
  }
  await start()
  const operator = () => createClient({ url: `http://127.0.0.1:${port}`, token: orchub!.operatorToken })

  return {
    get url() {
      return `http://127.0.0.1:${port}`
    },
    get client() {
      return operator()
    },
    get orchub() {
      return orchub!
    },
    async link(person) {
      const client =
        person === undefined
          ? operator()
          : createClient({
              url: `http://127.0.0.1:${port}`,
              token: (await operator().mintToken(person)).token,
            })
      return `http://127.0.0.1:${port}${(await client.mintLogin()).path}`
    },
    async restart() {
      await stop()
      await start()
    },
    stop,
    start,
    async close() {
      await orchub?.close('end')
      spawnSync('tmux', ['-L', socket, 'kill-server'])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export const say = (to: string, title: string, content: string) =>
  `<orc-command name="send_message" to="${to}" title="${title}">\n${content}\n</orc-command>`
