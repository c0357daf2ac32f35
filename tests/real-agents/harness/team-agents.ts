/** The members of a real team: each program on the machine of a user of its own, and what orc.yaml says of it. */
import { join } from 'node:path'
import type { AgentName } from '../../../scripts/install-agents.ts'
import type { ConfigInput, ProgramName } from '../../../src/config/config.ts'
import { prepareHome } from './home.ts'
import { endProcessesOf, killProcessesOf, processesOf, signalProcessesOf } from './leftovers.ts'

export interface TeamAgentsOptions {
  /** Agent → which installed program it is. */
  readonly programs: Readonly<Record<string, AgentName>>
  readonly folder: string
  readonly modelUrl: string
  readonly runtime?: 'tmux' | 'acp'
}

const PROGRAM: Record<AgentName, ProgramName> = {
  'claude-code': 'claude-code',
  'claude-code-2.1.197': 'claude-code',
  'claude-agent-acp': 'claude-code',
  codex: 'codex',
  'codex-acp': 'codex',
  gemini: 'gemini',
  opencode: 'opencode',
}

export async function prepareTeamAgents({ programs, folder, modelUrl, runtime = 'tmux' }: TeamAgentsOptions) {
  const agents: ConfigInput['agents'] = {}
  const homeOf = (name: string) => join(folder, 'homes', name)
  for (const [name, installed] of Object.entries(programs)) {
    const cwd = join(folder, 'work', name)
    const home = await prepareHome(installed, {
      ...{ folder: homeOf(name), cwd, modelUrl, key: `sk-ant-fake-${name}` },
    })
    agents[name] = { program: PROGRAM[installed], runtime, folder: cwd, with: home.settings }
  }
  return {
    agents,
    /** Without limits, which a fast model would reach. */
    config: {
      agents,
      limits: { rate: 'off', ping_pong: 'off', hops: 'off' },
      permissions: { urgent: 'allow' },
    } satisfies ConfigInput,
    homeOf,
    /** Processes of that agent that still run, wherever they are. */
    processes: (name: string) => processesOf(homeOf(name)),
    signal: (name: string, signal: NodeJS.Signals, spared?: number) =>
      signalProcessesOf(homeOf(name), signal, spared),
    kill: (name: string) => killProcessesOf(homeOf(name)),
    async end() {
      for (const name of Object.keys(programs)) await endProcessesOf(homeOf(name))
    },
  }
}
