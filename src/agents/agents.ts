import type { z } from 'zod'
import type { Team } from '../commands/team.ts'
import type { Reader } from '../store/store.ts'
import type { AgentSchema } from './api.ts'
import type { Sessions } from './sessions.ts'
import { readAgents, readSession } from './store.ts'
import type { UsageTracker } from './usage-and-limits.ts'

export { renderPrompt } from './prompt.ts'
export { readAgent, readAgents, setPaused } from './store.ts'

/** The public view of an agent: its declared status and the state of its session. */
type RosterEntry = z.output<typeof AgentSchema>

export interface RosterSources {
  usageTracker: Pick<UsageTracker, 'context' | 'spent'>
  sessions: Pick<Sessions, 'waitsFor'>
}

export async function rosterOf(
  reader: Reader,
  team: Team,
  { usageTracker, sessions }: RosterSources,
): Promise<RosterEntry[]> {
  const rows = new Map((await readAgents(reader)).map((row) => [row.name, row]))
  return team.config.agents.map((agent) => {
    const row = rows.get(agent.name)
    const session = row?.session_state ?? 'unknown'
    const context = usageTracker.context(agent.name)
    const spent = usageTracker.spent(agent.name)
    const waitsFor = session === 'idle' && row?.paused !== 1 ? sessions.waitsFor(agent.name) : undefined
    return {
      name: agent.name,
      ...(agent.parent === undefined ? {} : { parent: agent.parent }),
      ...(agent.role === undefined ? {} : { role: agent.role }),
      status: row?.declared_status ?? session,
      session: row?.paused === 1 ? 'paused' : session,
      ...(waitsFor === undefined ? {} : { waits_for: waitsFor }),
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

/** True if a person stopped the agent: it stays stopped until it is started explicitly. */
export async function isStopped(reader: Reader, agent: string): Promise<boolean> {
  return (await readSession(reader, agent))?.wanted === 0
}
