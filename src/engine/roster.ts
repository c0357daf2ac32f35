import { readAgents } from '../store/agents.ts'
import type { Reader } from '../store/store.ts'
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
  updated_at: string
}

export async function rosterOf(reader: Reader, team: Team): Promise<RosterEntry[]> {
  const rows = new Map((await readAgents(reader)).map((row) => [row.name, row]))
  return team.config.agents.map((agent) => {
    const row = rows.get(agent.name)
    const session = row?.session_state ?? 'unknown'
    return {
      name: agent.name,
      ...(agent.parent === undefined ? {} : { parent: agent.parent }),
      ...(agent.role === undefined ? {} : { role: agent.role }),
      status: row?.declared_status ?? session,
      session: row?.paused === 1 ? 'paused' : session,
      ...(row?.current_task ? { current_task: row.current_task } : {}),
      paused: row?.paused === 1,
      updated_at: new Date(row?.updated_at ?? 0).toISOString(),
    }
  })
}
