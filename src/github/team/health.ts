import { ORCHESTRATOR } from '../../base/agent.ts'
import type { Reader, Tx } from '../../store/store.ts'
import { clearTimer, setTimer } from '../../store/timer-rows.ts'
import { latestDeliveryAt } from '../store/deliveries.ts'
import {
  countWaiting,
  lastDoneAt,
  lastToldHealth,
  readConfidences,
  readOverdue,
  readStanding,
  readWorkFigures,
} from '../store/health.ts'
import { TEAM_ROLES } from '../terms.ts'
import { type AgentHealthCheck, encodeTeamMessage } from '../wire/codec.ts'
import { AUDIT, agentFor, type GithubParts } from './settings.ts'

const KIND = 'github_health'
/** S3.16. */
export const HEALTH_EVERY_MS = 5 * 60_000
const HOUR_MS = 3600_000
/** A task has five minutes; it may be extended. */
const OVERDUE_MS = 15 * 60_000
/** In an hour, from how many failures in a hundred on an agent is not well. */
const MANY_FAILURES = 20

type Status = AgentHealthCheck['status']
const NO_WORDS = { issues: [], warnings: [] }

export interface AgentHealth {
  agent: string
  roles: string[]
  status: Status
  last_task_completed?: string
  tasks_completed_last_hour: number
  average_response_time_ms?: number
  error_rate_percentage: number
  confidence_score_average?: number
  issues: string[]
  warnings: string[]
}

export interface GithubState {
  dry_run: boolean
  events_waiting: number
  actions_waiting: number
  last_event_at?: string
  agents: AgentHealth[]
}

/** How the agents of the team are: every five minutes as a message, and whenever somebody asks. */
export function createHealth({ store, timers, clock, team, settings }: GithubParts) {
  const startedAt = clock.now()
  /** What agents that speak the protocol themselves said last, and when it came: their clocks are theirs. */
  const own = new Map<string, { message: AgentHealthCheck; at: number }>()
  const known = new Map<string, Status>()

  timers.on(KIND, async (tx) => {
    if (team().config.github === undefined) return
    for (const found of await look(tx)) tell(tx, found)
    await arm(tx)
  })

  async function arm(tx: Tx) {
    const due = tx.now + HEALTH_EVERY_MS
    await setTimer(tx, KIND, 'team', due)
    tx.afterCommit(() => timers.setFor(due))
  }

  function rolesByAgent(): Map<string, string[]> {
    const { routes, schedule, team: named } = settings()
    const steps = [...Object.values(routes).flat(), ...schedule].map(({ to }) => to)
    const roles = new Map<string, string[]>()
    for (const role of new Set([...TEAM_ROLES, ...Object.keys(named), ...steps])) {
      const agent = agentFor(team(), settings(), role)
      if (agent !== undefined) roles.set(agent, [...(roles.get(agent) ?? []), role])
    }
    return roles
  }

  /** `said`: what the agent itself complains of, which is nobody's but the operator's to read. */
  interface Found {
    health: AgentHealth
    said: Pick<AgentHealthCheck, 'issues' | 'warnings'>
  }

  async function look(reader: Reader): Promise<Found[]> {
    const now = clock.now()
    const figures = await readWorkFigures(reader, now - HOUR_MS)
    const confidences = await readConfidences(reader, now - HOUR_MS)
    const overdue = await readOverdue(reader, now - OVERDUE_MS)
    const sessions = await reader.all<{ name: string; session_state: string; paused: number }>(
      'SELECT name, session_state, paused FROM agents',
    )
    const found: Found[] = []
    for (const [agent, roles] of rolesByAgent()) {
      const of = <Row extends { agent: string }>(rows: readonly Row[]) =>
        rows.find((row) => row.agent === agent)
      const session = sessions.find(({ name }) => name === agent)
      const { failures, halted } = await readStanding(reader, agent)
      const { done = 0, failed = 0, average_ms = null } = of(figures) ?? {}
      const lastDone = await lastDoneAt(reader, agent)
      const latest = own.get(agent)
      const fresh = latest !== undefined && now - latest.at < 2 * HEALTH_EVERY_MS ? latest.message : undefined
      const said = fresh === undefined || team().isConfidential(agent) ? NO_WORDS : fresh
      const issues: string[] = []
      const warnings: string[] = []
      if (halted) issues.push(`halted after ${failures} failures in a row: orc resume ${agent}`)
      else if (session?.paused === 1) warnings.push('paused by a person')
      if (session?.session_state === 'error') issues.push('its session is in error')
      const late = of(overdue)?.count ?? 0
      if (late > 0) warnings.push(`${late} of its tasks are older than 15 minutes`)
      const rate =
        Number(done) + Number(failed) === 0 ? 0 : (100 * Number(failed)) / (Number(done) + Number(failed))
      if (rate >= MANY_FAILURES) warnings.push(`${Math.round(rate)} % of its tasks in the last hour failed`)
      const average = of(confidences)?.average
      const health: AgentHealth = {
        agent,
        roles,
        status: worst([
          issues.length > 0 ? 'error' : warnings.length > 0 ? 'degraded' : 'healthy',
          fresh?.status ?? 'healthy',
        ]),
        ...(lastDone === undefined ? {} : { last_task_completed: new Date(Number(lastDone)).toISOString() }),
        tasks_completed_last_hour: Number(done),
        ...(average_ms === null ? {} : { average_response_time_ms: Math.round(Number(average_ms)) }),
        error_rate_percentage: Math.round(rate * 10) / 10,
        ...(average === undefined
          ? {}
          : { confidence_score_average: Math.round(Number(average) * 1000) / 1000 }),
        issues,
        warnings,
      }
      found.push({ health, said })
    }
    return found
  }

  /** Every one is written down; the public sees that one is not well, and that it is well again. */
  function tell(tx: Tx, { health, said }: Found) {
    const { agent, status } = health
    const before = known.get(agent) ?? 'healthy'
    const hasChanged = before !== status
    known.set(agent, status)
    // In public are the service's own words only: an agent's could be anybody's that it read.
    const told = hasChanged ? health : withWords({ health, said })
    const why = [...told.issues, ...told.warnings].join('; ')
    tx.audit({
      type: AUDIT.health,
      class: hasChanged ? 'public' : 'internal',
      actor: agent,
      subject: ORCHESTRATOR,
      text: `${agent} is ${status}${why === '' ? '' : `: ${why}`}`,
      data: JSON.parse(encodeTeamMessage(messageOf(told, tx.now))) as Record<string, unknown>,
    })
  }

  function withWords({ health, said }: Found): AgentHealth {
    const { issues, warnings } = health
    return { ...health, issues: [...issues, ...said.issues], warnings: [...warnings, ...said.warnings] }
  }

  function messageOf(health: AgentHealth, now: number): AgentHealthCheck {
    const { agent, roles } = health
    return {
      type: 'agent_health_check',
      id: `health-${agent}-${now}`,
      at: new Date(now).toISOString(),
      from: roles[0] ?? agent,
      to: ORCHESTRATOR,
      status: health.status,
      uptimeSeconds: Math.max(0, Math.floor((now - startedAt) / 1000)),
      lastTaskCompleted: health.last_task_completed ?? null,
      performanceMetrics: {
        tasksCompletedLastHour: health.tasks_completed_last_hour,
        averageResponseTimeMs: health.average_response_time_ms,
        errorRatePercentage: health.error_rate_percentage,
        confidenceScoreAverage: health.confidence_score_average,
      },
      issues: health.issues,
      warnings: health.warnings,
    }
  }

  return {
    async begin(): Promise<void> {
      // What was said before the start is not said again as if it were news, and what is over is.
      for (const { agent, status } of await lastToldHealth(store, clock.now() - 24 * HOUR_MS))
        if (!known.has(agent)) known.set(agent, status)
      await store.write(arm)
    },
    async end(): Promise<void> {
      await store.write((tx) => clearTimer(tx, KIND, 'team'))
    },
    /** An agent that speaks the protocol says how it is. */
    heard(agent: string, message: AgentHealthCheck): void {
      own.set(agent, { message, at: clock.now() })
    },
    async state(): Promise<GithubState> {
      const { events, actions } = await countWaiting(store)
      const last = await latestDeliveryAt(store)
      return {
        dry_run: settings().dryRun,
        events_waiting: Number(events),
        actions_waiting: Number(actions),
        ...(last === undefined ? {} : { last_event_at: new Date(Number(last)).toISOString() }),
        agents: (await look(store)).map(withWords),
      }
    },
  }
}

const ORDER: readonly Status[] = ['healthy', 'degraded', 'error']

function worst(statuses: readonly Status[]): Status {
  return ORDER[Math.max(...statuses.map((status) => ORDER.indexOf(status)))]!
}
