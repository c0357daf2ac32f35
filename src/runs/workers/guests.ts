import { hash } from 'node:crypto'
import type { AgentConfig, Config } from '../../config/config.ts'
import type { WorkOrder } from './worker.ts'

/** Agent programs that are started for one attempt or fix, and are members of the team during that time. */
export interface Guests {
  /** Returns its name in the team. */
  invite(order: WorkOrder): Promise<string>
  dismiss(order: WorkOrder): Promise<void>
  isInvited(order: WorkOrder): boolean
}

interface GuestsOptions {
  /** Called when the members of the team change. */
  changed(): Promise<void>
  stop(agent: string): Promise<void>
}

const LONGEST_NAME = 64

export function createGuests({ changed, stop }: GuestsOptions) {
  const guests = new Map<string, AgentConfig>()
  /** Programs that are stopping. */
  const leaving = new Map<string, Promise<void>>()

  async function letGo(name: string): Promise<void> {
    try {
      await stop(name)
    } finally {
      guests.delete(name)
      await changed()
    }
  }

  return {
    async invite(order: WorkOrder): Promise<string> {
      const name = guestName(order)
      await leaving.get(name)?.catch(() => {})
      if (!guests.has(name)) {
        guests.set(name, configOf(name, order))
        await changed()
      }
      return name
    },
    async dismiss(order: WorkOrder): Promise<void> {
      const name = guestName(order)
      if (!guests.has(name)) return
      const gone = leaving.get(name) ?? letGo(name).finally(() => leaving.delete(name))
      leaving.set(name, gone)
      await gone
    },
    isInvited: (order: WorkOrder): boolean => order.runner.kind === 'program' && guests.has(guestName(order)),
    /** Adds a program of an earlier service, before the team is first made. */
    expect(order: WorkOrder) {
      guests.set(guestName(order), configOf(guestName(order), order))
    },
    /** Adds the guests to the agents of orc.yaml. */
    among: (config: Config): Config =>
      guests.size === 0 ? config : { ...config, agents: [...config.agents, ...guests.values()] },
  }
}

export type GuestBook = ReturnType<typeof createGuests>

/** `run_7-writer`; for a fix `run_7-writer-fix-1`. */
export function guestName({ run, node, what }: WorkOrder): string {
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
    // Guests work with files and send no messages.
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
