import type { SettingsProblem } from '../base/settings-problem.ts'

/** The content of plan.yaml: a graph of agents that hand files to each other. */

/** Fate of a dependent if the agent it depends on failed or was skipped (C22). */
export const EDGE_POLICIES = ['fail', 'skip', 'proceed'] as const
export type EdgePolicy = (typeof EDGE_POLICIES)[number]

/** Reaction if the retries of an agent are used up, or a retry would not help (S4.12). */
export const RECOVERIES = ['retry', 'fix', 'skip', 'escalate'] as const
type Recovery = (typeof RECOVERIES)[number]

export const WORKSPACE_TEMPLATES = [
  'research',
  'code',
  'analysis',
  'writer',
  'review',
  'integration',
  'generic',
] as const
export type WorkspaceTemplate = (typeof WORKSPACE_TEMPLATES)[number]

/** The folder beside the workspaces in which agents leave messages. */
export const MESSAGES = 'messages'

export const MESSAGE_TYPES = ['data_ready', 'question', 'answer', 'update'] as const

/** Does the work of an agent. `files`: someone outside, who is visible only through status.json. */
export type Runner =
  | { readonly kind: 'command'; readonly command: string }
  /** A member of the team in orc.yaml. */
  | { readonly kind: 'agent'; readonly agent: string }
  | {
      readonly kind: 'program'
      readonly program: string
      readonly runtime: 'tmux' | 'acp'
      readonly with: Readonly<Record<string, unknown>>
    }
  /** A name from `models` in orc.yaml. */
  | { readonly kind: 'model'; readonly model: string; readonly with: Readonly<Record<string, unknown>> }
  | { readonly kind: 'files' }

/** The sections of instructions.md (S4.5). */
export interface PlanInstructions {
  readonly objective: string
  readonly context: string
  readonly inputsProvided: readonly string[]
  readonly requirements: readonly string[]
  readonly successCriteria: readonly string[]
  readonly constraints: readonly string[]
  readonly outputExpectations: readonly string[]
}

export interface InputFile {
  /** As written: relative to the plan. */
  readonly path: string
  /** Target, relative to the workspace: `inbox/…`. */
  readonly to: string
  readonly description: string
}

export interface PlanCheck {
  readonly name: string
  readonly command: string
  readonly timeoutMs: number
}

export interface Dependency {
  readonly agent: string
  /** Globs relative to the other workspace, `outbox/…`. Empty: only wait for the agent. */
  readonly outputs: readonly string[]
  /** A folder, relative to the own workspace: `inbox/…`. */
  readonly copyTo: string
  readonly onFailure: EdgePolicy
}

export interface PlanAgent {
  readonly name: string
  readonly runner: Runner
  readonly template: WorkspaceTemplate
  readonly instructions: PlanInstructions
  readonly inputs: readonly InputFile[]
  /** Required deliverables, as globs `outbox/…`. Empty: any one besides summary.md (S4.7). */
  readonly outputs: readonly string[]
  readonly checks: readonly PlanCheck[]
  /** A model or an agent from orc.yaml. `default`: the judge set in orc.yaml. */
  readonly judge: 'default' | 'off' | { readonly name: string }
  readonly retries: number
  /** For one attempt. */
  readonly timeoutMs: number
  /** Stall timeout: the longest time without activity. Null: unlimited. */
  readonly stallMs: number | null
  readonly worktree: boolean
  readonly onError: Recovery
  /** A fixer of the plan or a member of the team; null: a person. */
  readonly fixer: string | null
  /** How often its inputs may be fixed before a person is asked. */
  readonly maxFixes: number
  readonly dependsOn: readonly Dependency[]
}

/** Corrects the inputs of an agent that failed, before the next attempt. */
export interface Fixer {
  readonly name: string
  readonly runner: Runner
  readonly instructions: PlanInstructions
  readonly timeoutMs: number
}

export interface Plan {
  readonly name: string
  readonly goal: string
  /** How many agents run at once. */
  readonly concurrency: number
  /** For the whole run. Null: unlimited. */
  readonly timeoutMs: number | null
  /** How long a person has to decide on an agent that failed. Null: unlimited. */
  readonly askMs: number | null
  /** Whether its agents have a folder for messages to each other (S4.16). */
  readonly messages: boolean
  /** In the order of the file. */
  readonly agents: readonly PlanAgent[]
  readonly fixers: readonly Fixer[]
}

/** The part of orc.yaml that a plan is checked against. Unknown names are not checked. */
export interface PlanTeam {
  readonly agents?: readonly string[]
  readonly models?: readonly string[]
  /** Returns what is wrong with the settings of a program, as its runtime sees them. */
  checkProgram?(runner: Extract<Runner, { kind: 'program' }>): readonly SettingsProblem[]
}

/** All outputs, without the remains of a failure (S4.11). */
export const ALL_OUTPUTS = 'outbox/**'

/** Outputs that an agent may make without declaring them (S4.7, S4.8). */
export const UNDECLARED: ReadonlySet<string> = new Set(
  ['summary.md', 'changelog.md', 'issues.md', 'metadata.json'].map((file) => `outbox/${file}`),
)

/** `to` waits for `from`. */
interface Edge {
  readonly from: string
  readonly to: string
  readonly onFailure: EdgePolicy
}

export interface Graph {
  readonly plan: Plan
  readonly agents: ReadonlyMap<string, PlanAgent>
  /** Edges to the agents that an agent waits for. */
  readonly needs: ReadonlyMap<string, readonly Edge[]>
  /** Edges to the agents that wait for an agent. */
  readonly feeds: ReadonlyMap<string, readonly Edge[]>
}

const STRICTER: Record<EdgePolicy, number> = { fail: 2, skip: 1, proceed: 0 }

/** Makes one edge for each pair of agents, with the strictest policy of all its entries in `depends_on`. */
export function graphOf(plan: Plan): Graph {
  const agents = new Map(plan.agents.map((agent) => [agent.name, agent]))
  const needs = new Map<string, Edge[]>()
  const feeds = new Map<string, Edge[]>(plan.agents.map(({ name }) => [name, []]))
  for (const { name, dependsOn } of plan.agents) {
    const edges = new Map<string, Edge>()
    for (const { agent, onFailure } of dependsOn) {
      // Validation reports both; the graph can still be drawn.
      if (!agents.has(agent) || agent === name) continue
      const before = edges.get(agent)
      if (before === undefined || STRICTER[onFailure] > STRICTER[before.onFailure]) {
        edges.set(agent, { from: agent, to: name, onFailure })
      }
    }
    needs.set(name, [...edges.values()])
    for (const edge of edges.values()) feeds.get(edge.from)!.push(edge)
  }
  return { plan, agents, needs, feeds }
}

/** Orders agents after their dependencies. Leaves out agents in a cycle and those that depend on one. */
export function topologicalOrder({ needs, feeds }: Pick<Graph, 'needs' | 'feeds'>): string[] {
  const missing = new Map<string, number>()
  const order: string[] = []
  for (const [name, edges] of needs) {
    missing.set(name, edges.length)
    if (edges.length === 0) order.push(name)
  }
  // The list grows during the loop.
  for (const name of order) {
    for (const { to } of feeds.get(name)!) {
      const left = missing.get(to)! - 1
      missing.set(to, left)
      if (left === 0) order.push(to)
    }
  }
  return order
}

/** Finds cycles, each as the names of its agents in the order of waiting; at least one for each group of cycles. */
export function findCycles(graph: Graph): string[][] {
  const ordered = new Set(topologicalOrder(graph))
  const seen = new Set<string>()
  const cycles: string[][] = []
  for (const start of graph.needs.keys()) {
    if (ordered.has(start) || seen.has(start)) continue
    // Each remaining agent waits for another one, so the walk ends in a cycle or where an earlier walk passed.
    const walk = new Map<string, number>()
    let name = start
    while (!seen.has(name)) {
      seen.add(name)
      walk.set(name, walk.size)
      name = graph.needs.get(name)!.find(({ from }) => !ordered.has(from))!.from
    }
    const begin = walk.get(name)
    if (begin !== undefined) cycles.push([...walk.keys()].slice(begin))
  }
  return cycles
}

/** Groups agents into steps that can run in parallel: each agent is in the first step after all its dependencies. */
export function stepsOf(graph: Graph): string[][] {
  const depth = depths(graph)
  const steps: string[][] = []
  for (const [name, at] of depth) {
    while (steps.length <= at) steps.push([])
    steps[at]!.push(name)
  }
  return steps
}

/** Length of the longest chain of dependencies before each agent. */
function depths(graph: Graph): Map<string, number> {
  const depth = new Map<string, number>()
  for (const name of topologicalOrder(graph)) {
    let deepest = 0
    for (const { from } of graph.needs.get(name)!) deepest = Math.max(deepest, depth.get(from)! + 1)
    depth.set(name, deepest)
  }
  return depth
}

/** The most expensive chain of dependencies: shortening it shortens the run. */
export function criticalPath(graph: Graph, cost: (name: string) => number): string[] {
  const best = new Map<string, { total: number; before: string | null }>()
  let last: string | null = null
  for (const name of topologicalOrder(graph)) {
    let [total, before]: [number, string | null] = [0, null]
    for (const { from } of graph.needs.get(name)!) {
      const through = best.get(from)!.total
      if (before === null || through > total) [total, before] = [through, from]
    }
    best.set(name, { total: total + cost(name), before })
    if (last === null || best.get(name)!.total > best.get(last)!.total) last = name
  }
  const path: string[] = []
  for (let name = last; name !== null; name = best.get(name)!.before) path.push(name)
  return path.reverse()
}
