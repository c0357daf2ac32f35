import { hash } from 'node:crypto'
import type { AgentConfig, Config } from '../../config/config.ts'
import type { WorkOrder } from './worker.ts'

interface TemporaryAgentsOptions {
  /** Called when the members of the team change. */
  changed(): Promise<void>
  stop(agent: string): Promise<void>
}

const LONGEST_NAME = 64

/** Agent programs that a plan starts for one attempt or fix. They are members of the team during that time. */
export function createTemporaryAgents({ changed, stop }: TemporaryAgentsOptions) {
  const agents = new Map<string, AgentConfig>()
  /** Agents that are stopping. */
  const leaving = new Map<string, Promise<void>>()

  async function stopAndRemove(name: string): Promise<void> {
    try {
      await stop(name)
    } finally {
      agents.delete(name)
      await changed()
    }
  }

  return {
    /** Adds the agent that does the work to the team, and returns its name there. */
    async add(order: WorkOrder): Promise<string> {
      const name = temporaryName(order)
      await leaving.get(name)?.catch(() => {})
      if (!agents.has(name)) {
        agents.set(name, configOf(name, order))
        await changed()
      }
      return name
    },
    /** Stops the agent and removes it from the team. */
    async remove(order: WorkOrder): Promise<void> {
      const name = temporaryName(order)
      if (!agents.has(name)) return
      const gone = leaving.get(name) ?? stopAndRemove(name).finally(() => leaving.delete(name))
      leaving.set(name, gone)
      await gone
    },
    has: (order: WorkOrder): boolean => order.runner.kind === 'program' && agents.has(temporaryName(order)),
    /** Adds an agent that an earlier service started, before the team is first made. */
    restore(order: WorkOrder) {
      agents.set(temporaryName(order), configOf(temporaryName(order), order))
    },
    /** Returns the configuration with these agents after those of orc.yaml. */
    addTo: (config: Config): Config =>
      agents.size === 0 ? config : { ...config, agents: [...config.agents, ...agents.values()] },
  }
}

export type TemporaryAgents = ReturnType<typeof createTemporaryAgents>

/** `run_7-writer`; for a fix `run_7-writer-fix-1`. */
export function temporaryName({ run, node, what }: WorkOrder): string {
  const name = what.startsWith('attempt') ? `${run}-${node}` : `${run}-${node}-${what.replace(' ', '-')}`
  return name.length <= LONGEST_NAME
    ? name
    : `${name.slice(0, LONGEST_NAME - 9)}-${hash('sha256', name).slice(0, 8)}`
}

function configOf(name: string, { runner, workspace, node, run }: WorkOrder): AgentConfig {
  if (runner.kind !== 'program') throw new Error(`not a program: ${runner.kind}`)
  return {
    name,
    role: `${node} of ${run}`,
    // These agents work with files and send no messages.
    send: [],
    receive: [],
    permissions: {},
    runtime: runner.runtime,
    program: runner.program as NonNullable<AgentConfig['program']>,
    folder: workspace,
    deliver: 'together',
    with: runner.with,
    autostart: false,
    onDemand: true,
    capabilities: [],
  }
}
