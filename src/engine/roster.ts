import { readAgents } from '../store/agents.ts'
import type { Reader } from '../store/store.ts'
import type { Context } from './fullness.ts'
import type { Meter } from './meter.ts'
import type { Team } from './team.ts'

/** An agent as everyone may see it: what it says of itself, and what is known of its session. */
export interface RosterEntry {
  name: string
  parent?: string
  role?: string
  status: string
  session: string
  current_task?: string
  paused: boolean
  runtime: string
  program?: string
  context?: Context
  spent?: number
  updated_at: string
}

export async function rosterOf(
  reader: Reader,
  team: Team,
  meter: Pick<Meter, 'context' | 'spent'>,
): Promise<RosterEntry[]> {
  const rows = new Map((await readAgents(reader)).map((row) => [row.name, row]))
  return team.config.agents.map((agent) => {
    const row = rows.get(agent.name)
    const session = row?.session_state ?? 'unknown'
    const context = meter.context(agent.name)
    const spent = meter.spent(agent.name)
    return {
      name: agent.name,
      ...(agent.parent === undefined ? {} : { parent: agent.parent }),
      ...(agent.role === undefined ? {} : { role: agent.role }),
      status: row?.declared_status ?? session,
      session: row?.paused === 1 ? 'paused' : session,
      ...(row?.current_task ? { current_task: row.current_task } : {}),
      paused: row?.paused === 1,
      runtime: agent.runtime,
      ...(agent.program === undefined ? {} : { program: agent.program }),
      ...(context === undefined ? {} : { context }),
      ...(spent === 0 ? {} : { spent }),
      updated_at: new Date(row?.updated_at ?? 0).toISOString(),
    }
  })
}
