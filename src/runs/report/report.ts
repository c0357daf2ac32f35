import type { Run } from '../core/run-state.ts'
import { criticalPath, type Graph } from '../plan.ts'
import type { NodeAttempt, NodeState, OutputFile, RunOutcome, Spent } from '../run.ts'

export interface AgentReport {
  readonly name: string
  readonly state: NodeState
  readonly cached: boolean
  readonly reason: string
  readonly objective: string
  readonly dependsOn: readonly string[]
  /** Start of the first attempt and end of the last, in milliseconds after the run began. Null: no attempt. */
  readonly from: number | null
  readonly to: number | null
  /** Duration of the attempts of this round with their validation. */
  readonly workedMs: number
  /** In this round. */
  readonly attempts: readonly NodeAttempt[]
  /** In all rounds. */
  readonly attemptsInAll: number
  readonly spent: Spent
  readonly summary: string
  readonly outputs: readonly OutputFile[]
  /** Why `_outputs` differs from the validated outputs; empty if it does not. */
  readonly unconsolidated: string
}

/** The result of a run, for the reports and for programs. */
export interface RunReport {
  readonly id: string
  readonly name: string
  readonly goal: string
  readonly round: number
  /** Null: still running. */
  readonly outcome: RunOutcome | null
  readonly cancelled: string | null
  readonly begunAt: number
  readonly elapsedMs: number
  readonly workedMs: number
  readonly spent: Spent
  readonly agents: readonly AgentReport[]
  /** The chain that took longest, with the pauses between attempts. */
  readonly criticalPath: readonly string[]
  readonly graph: Graph
}

export function reportOf(run: Run, now: number): RunReport {
  const { head, graph } = run
  const begunAt = head.begunAt ?? head.createdAt
  const agents = graph.plan.agents.map(({ name }) => agentReport(run, name, begunAt, now))
  // Pauses between attempts delay dependents as well.
  const took = new Map(agents.map(({ name, from, to }) => [name, (to ?? 0) - (from ?? 0)]))
  return {
    id: head.id,
    name: graph.plan.name,
    goal: graph.plan.goal,
    round: head.round,
    outcome: head.outcome,
    cancelled: head.cancelled === null ? null : `${head.cancelled.by}: ${head.cancelled.reason}`,
    begunAt,
    elapsedMs: (head.endedAt ?? now) - begunAt,
    workedMs: agents.reduce((sum, { workedMs }) => sum + workedMs, 0),
    spent: sumOf(agents.map(({ spent }) => spent)),
    agents,
    criticalPath: criticalPath(graph, (name) => took.get(name)!),
    graph,
  }
}

function agentReport({ head, nodes, graph }: Run, name: string, begunAt: number, now: number): AgentReport {
  const { state, cached, reason, attempts, result } = nodes.get(name)!
  const here = attempts.filter(({ orderedAt }) => orderedAt >= begunAt)
  const ends = here.map(({ endedAt }) => endedAt ?? now)
  return {
    name,
    state,
    cached,
    reason,
    objective: graph.agents.get(name)!.instructions.objective,
    dependsOn: graph.needs.get(name)!.map(({ from }) => from),
    from: here.length === 0 ? null : here[0]!.orderedAt - begunAt,
    to: here.length === 0 ? null : ends.at(-1)! - begunAt,
    workedMs: here.reduce((sum, { orderedAt }, index) => sum + ends[index]! - orderedAt, 0),
    attempts: here,
    attemptsInAll: attempts.length,
    spent: sumOf(here.flatMap(({ spent }) => (spent === null ? [] : [spent]))),
    summary: result?.summary ?? '',
    outputs: result?.outputs ?? [],
    unconsolidated: unconsolidatedIn(head, name),
  }
}

/** Own properties only: an agent may be called `constructor`. */
function unconsolidatedIn({ unconsolidated = {} }: Run['head'], name: string): string {
  return Object.hasOwn(unconsolidated, name) ? unconsolidated[name]! : ''
}

/** Skips unknown costs; the sum is null if all are unknown. */
function sumOf(all: readonly Spent[]): Spent {
  return all.reduce(
    (sum, { inputTokens, outputTokens, cost }) => ({
      inputTokens: sum.inputTokens + inputTokens,
      outputTokens: sum.outputTokens + outputTokens,
      cost: cost === null ? sum.cost : (sum.cost ?? 0) + cost,
    }),
    { inputTokens: 0, outputTokens: 0, cost: null },
  )
}
