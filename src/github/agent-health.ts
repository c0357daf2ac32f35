/** Checks the health of the team's agents every five minutes, and reports it on request (S3.16). */
import { readAgents } from '../agents/agents.ts'
import { ORCHESTRATOR } from '../base/agent.ts'
import type { Reader, Tx } from '../store/store.ts'
import { setTimer } from '../store/timers.ts'
import type { GithubTeamState } from './api.ts'
import type { AgentHealthCheck } from './core/protocol.ts'
import { AUDIT, type GithubDependencies } from './dependencies.ts'
import { agentFor } from './roles.ts'
import { readFailureStreak, readQueues } from './store.ts'
import { TEAM_ROLES } from './team-settings.ts'

const KIND = 'github_health'
const HEALTH_EVERY_MS = 5 * 60_000
const HOUR_MS = 3600_000
/** Tasks have five minutes by default, and agents may extend them. */
const OVERDUE_MS = 15 * 60_000
/** An agent with this percentage of failed tasks in the last hour is degraded. */
const MAX_FAILURE_RATE = 20

type HealthStatus = AgentHealthCheck['status']
const NO_COMPLAINTS = { issues: [], warnings: [] }

type AgentHealth = GithubTeamState['agents'][number]

export function createAgentHealth({ store, timers, clock, team, settings }: GithubDependencies) {
  const startedAt = clock.now()
  /** The last health check that each member sent, with the time of its arrival. */
  const ownChecks = new Map<string, { message: AgentHealthCheck; at: number }>()
  /** The status that was recorded last. */
  const statuses = new Map<string, HealthStatus>()

  timers.on(KIND, async (tx) => {
    if (team().config.github === undefined) return
    for (const checked of await check(tx)) await record(tx, checked)
    arm(tx)
  })

  function arm(tx: Tx) {
    const due = tx.now + HEALTH_EVERY_MS
    setTimer(tx, KIND, 'team', due)
    tx.afterCommit(() => timers.setFor(due))
  }

  function rolesByAgent(): Map<string, string[]> {
    const { routes, schedule, team: named } = settings()
    const steps = [...Object.values(routes).flat(), ...schedule].map(({ to }) => to)
    const roles = new Map<string, string[]>()
    for (const role of new Set([...TEAM_ROLES, ...Object.keys(named), ...steps])) {
      const agent = agentFor(team(), role)
      if (agent !== undefined) roles.set(agent, [...(roles.get(agent) ?? []), role])
    }
    return roles
  }

  /** `complaints`: problems that the agent reported itself; only the operator may read them. */
  interface CheckedAgent {
    health: AgentHealth
    complaints: Pick<AgentHealthCheck, 'issues' | 'warnings'>
  }

  async function check(reader: Reader): Promise<CheckedAgent[]> {
    const now = clock.now()
    const sessions = await readAgents(reader)
    const checked: CheckedAgent[] = []
    for (const [agent, roles] of rolesByAgent()) {
      const session = sessions.find(({ name }) => name === agent)
      const { failures, isSuspended } = await readFailureStreak(reader, agent)
      const figures = await readFigures(reader, agent, now)
      const done = Number(figures.done)
      const failed = Number(figures.failed)
      const overdue = Number(figures.overdue)
      const { last_done: lastDone, average_ms: average, confidence } = figures
      const latest = ownChecks.get(agent)
      const fresh = latest !== undefined && now - latest.at < 2 * HEALTH_EVERY_MS ? latest.message : undefined
      const complaints = fresh === undefined || team().isConfidential(agent) ? NO_COMPLAINTS : fresh
      const issues: string[] = []
      const warnings: string[] = []
      if (isSuspended) issues.push(`suspended after ${failures} failures in a row: orc agent resume ${agent}`)
      else if (session?.paused === 1) warnings.push('paused by a person')
      if (session?.session_state === 'error') issues.push('its session failed')
      if (overdue > 0) warnings.push(`${overdue} of its tasks are older than 15 minutes`)
      const rate = done + failed === 0 ? 0 : (100 * failed) / (done + failed)
      if (rate >= MAX_FAILURE_RATE)
        warnings.push(`${Math.round(rate)} % of its tasks in the last hour failed`)
      const health: AgentHealth = {
        agent,
        roles,
        status: worst([
          issues.length > 0 ? 'error' : warnings.length > 0 ? 'degraded' : 'healthy',
          fresh?.status ?? 'healthy',
        ]),
        last_task_completed: lastDone === null ? undefined : new Date(Number(lastDone)).toISOString(),
        tasks_completed_last_hour: done,
        average_response_time_ms: average === null ? undefined : Math.round(Number(average)),
        error_rate_percentage: Math.round(rate * 10) / 10,
        confidence_score_average:
          confidence === null ? undefined : Math.round(Number(confidence) * 1000) / 1000,
        issues,
        warnings,
      }
      checked.push({ health, complaints })
    }
    return checked
  }

  /** Every check is recorded; only a change of the status is public. */
  async function record(tx: Tx, { health, complaints }: CheckedAgent) {
    const { agent, status } = health
    const before = statuses.get(agent) ?? (await lastStatus(tx, agent))
    const hasChanged = before !== status
    tx.afterCommit(() => statuses.set(agent, status))
    // The public entry leaves out the agent's complaints: they may quote anything that the agent has read.
    const shown = hasChanged ? health : withComplaints({ health, complaints })
    const why = [...shown.issues, ...shown.warnings].join('; ')
    tx.audit({
      type: AUDIT.health,
      class: hasChanged ? 'public' : 'internal',
      actor: agent,
      subject: ORCHESTRATOR,
      text: `${agent} is ${status}${why === '' ? '' : `: ${why}`}`,
      data: messageOf(shown, tx.now),
    })
  }

  function withComplaints({ health, complaints }: CheckedAgent): AgentHealth {
    const { issues, warnings } = health
    return {
      ...health,
      issues: [...issues, ...complaints.issues],
      warnings: [...warnings, ...complaints.warnings],
    }
  }

  /** An `agent_health_check` of the protocol. */
  function messageOf(health: AgentHealth, now: number) {
    const { agent, roles, status, issues, warnings, last_task_completed, ...performance_metrics } = health
    return {
      message_type: 'agent_health_check',
      message_id: `health-${agent}-${now}`,
      timestamp: new Date(now).toISOString(),
      from_agent: roles[0] ?? agent,
      to_agent: ORCHESTRATOR,
      status,
      uptime_seconds: Math.max(0, Math.floor((now - startedAt) / 1000)),
      last_task_completed: last_task_completed ?? null,
      performance_metrics,
      issues,
      warnings,
    }
  }

  return {
    begin: () => store.write(arm),
    /** A member sent a health check. */
    reported(agent: string, message: AgentHealthCheck): void {
      ownChecks.set(agent, { message, at: clock.now() })
    },
    async state(): Promise<GithubTeamState> {
      const { newest, events, actions } = await readQueues(store)
      return {
        dry_run: settings().dryRun,
        events_waiting: Number(events),
        actions_waiting: Number(actions),
        last_event_at: newest === null ? undefined : new Date(Number(newest)).toISOString(),
        agents: (await check(store)).map(withComplaints),
      }
    },
  }
}

const ORDER: readonly HealthStatus[] = ['healthy', 'degraded', 'error']

function worst(statuses: readonly HealthStatus[]): HealthStatus {
  return ORDER[Math.max(...statuses.map((status) => ORDER.indexOf(status)))]!
}

interface AgentFigures {
  done: number | null
  failed: number | null
  average_ms: number | null
  last_done: number | null
  overdue: number | null
  confidence: number | null
}

/** Results and confidence of the agent's work in the last hour, and its open tasks that are overdue. */
async function readFigures(reader: Reader, agent: string, now: number): Promise<AgentFigures> {
  const row = await reader.get<AgentFigures>(
    `SELECT SUM(CASE WHEN state = 'done' AND ended_at > ? THEN 1 ELSE 0 END) AS done,
       SUM(CASE WHEN state = 'failed' AND ended_at > ? THEN 1 ELSE 0 END) AS failed,
       AVG(CASE WHEN state IN ('done', 'failed') AND ended_at > ? THEN ended_at - created_at END) AS average_ms,
       MAX(CASE WHEN state = 'done' THEN ended_at END) AS last_done,
       SUM(CASE WHEN ended_at IS NULL AND task IS NOT NULL AND created_at < ? THEN 1 ELSE 0 END) AS overdue,
       (SELECT AVG(confidence) FROM github_actions WHERE agent = ? AND created_at > ?) AS confidence
      FROM github_work WHERE agent = ?`,
    [now - HOUR_MS, now - HOUR_MS, now - HOUR_MS, now - OVERDUE_MS, agent, now - HOUR_MS, agent],
  )
  return row!
}

/** The status before a restart; healthy without a record of the last day. */
async function lastStatus(tx: Tx, agent: string): Promise<HealthStatus> {
  const row = await tx.get<{ data: string }>(
    'SELECT data FROM audit WHERE at >= ? AND type = ? AND actor = ? ORDER BY at DESC, seq DESC LIMIT 1',
    [tx.now - 24 * HOUR_MS, AUDIT.health, agent],
  )
  return row === undefined ? 'healthy' : (JSON.parse(row.data) as { status: HealthStatus }).status
}
