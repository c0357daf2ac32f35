import type { SettingsProblem } from '../base/settings-problem.ts'

/** What a plan.yaml means, once it is read: a graph of agents that hand files to each other. */

/** What becomes of a dependent when the agent it depends on failed or was skipped (C22). */
export const EDGE_POLICIES = ['fail', 'skip', 'proceed'] as const
export type EdgePolicy = (typeof EDGE_POLICIES)[number]

/** What follows once an agent's retries are used up, or trying again would not help (S4.12). */
export const RECOVERIES = ['retry', 'fix', 'skip', 'escalate'] as const
export type Recovery = (typeof RECOVERIES)[number]

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

/** What one agent may say to another there. */
export const MESSAGE_TYPES = ['data_ready', 'question', 'answer', 'update'] as const

/** What does an agent's work. `files`: someone outside, known by status.json and nothing else. */
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
  /** As written; relative to the plan. */
  readonly path: string
  /** Where it goes, from the workspace: `inbox/…`. */
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
  /** Globs from the other's workspace, `outbox/…`. None: it is only waited for. */
  readonly outputs: readonly string[]
  /** A folder in this one's workspace: `inbox/…`. */
  readonly copyTo: string
  readonly onFailure: EdgePolicy
}

export interface PlanAgent {
  readonly name: string
  readonly runner: Runner
  readonly template: WorkspaceTemplate
  readonly instructions: PlanInstructions
  readonly inputs: readonly InputFile[]
  /** Deliverables it is held to, as globs `outbox/…`. None: any one besides summary.md (S4.7). */
  readonly outputs: readonly string[]
  readonly checks: readonly PlanCheck[]
  /** A model or an agent of orc.yaml. `default`: as that says. */
  readonly judge: 'default' | 'off' | { readonly name: string }
  readonly retries: number
  /** Of one attempt. */
  readonly timeoutMs: number
  /** Without a sign of life. Null: not watched for. */
  readonly stallMs: number | null
  readonly worktree: boolean
  readonly onError: Recovery
  /** One of the plan's fixers, or a member of the team; null: a person. */
  readonly fixer: string | null
  /** How often its inputs may be fixed before a person is asked. */
  readonly maxFixes: number
  readonly dependsOn: readonly Dependency[]
}

/** Changes the inputs of an agent that failed, so that it can be tried again. */
export interface Fixer {
  readonly name: string
  readonly runner: Runner
  readonly instructions: PlanInstructions
  readonly timeoutMs: number
}

export interface Plan {
  readonly name: string
  readonly goal: string
  /** How many agents live at once. */
  readonly concurrency: number
  /** Of the whole run. Null: as long as it takes. */
  readonly timeoutMs: number | null
  /** How long a person has to decide on an agent that failed. Null: as long as it takes. */
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

/** `to` waits for `from`. */
export interface Edge {
  readonly from: string
  readonly to: string
  readonly onFailure: EdgePolicy
}

export interface Graph {
  readonly plan: Plan
  readonly agents: ReadonlyMap<string, PlanAgent>
  /** What an agent waits for. */
  readonly needs: ReadonlyMap<string, readonly Edge[]>
  /** What waits for an agent. */
  readonly feeds: ReadonlyMap<string, readonly Edge[]>
}

const STRICTER: Record<EdgePolicy, number> = { fail: 2, skip: 1, proceed: 0 }

/** One edge for each pair, however many entries ask for outputs of the other; the strictest of their policies holds. */
export function graphOf(plan: Plan): Graph {
  const agents = new Map(plan.agents.map((agent) => [agent.name, agent]))
  const needs = new Map<string, Edge[]>()
  const feeds = new Map<string, Edge[]>(plan.agents.map(({ name }) => [name, []]))
  for (const { name, dependsOn } of plan.agents) {
    const edges = new Map<string, Edge>()
    for (const { agent, onFailure } of dependsOn) {
      // Both are refused with their place; a graph is drawn and walked all the same.
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

/** Agents whose dependencies all come before them; those in a circle, and behind one, are left out. */
export function topologicalOrder({ needs, feeds }: Pick<Graph, 'needs' | 'feeds'>): string[] {
  const missing = new Map<string, number>()
  const order: string[] = []
  for (const [name, edges] of needs) {
    missing.set(name, edges.length)
    if (edges.length === 0) order.push(name)
  }
  // The list grows while it is read.
  for (const name of order) {
    for (const { to } of feeds.get(name)!) {
      const left = missing.get(to)! - 1
      missing.set(to, left)
      if (left === 0) order.push(to)
    }
  }
  return order
}

/** Circles, each as the names on it in the order of waiting; at least one for each knot. */
export function findCycles(graph: Graph): string[][] {
  const ordered = new Set(topologicalOrder(graph))
  const seen = new Set<string>()
  const cycles: string[][] = []
  for (const start of graph.needs.keys()) {
    if (ordered.has(start) || seen.has(start)) continue
    // Each of those left waits for another one left: the walk ends in a circle, or where an earlier one has been.
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

/** What can run at once, step by step: each agent stands in the first step in which all it waits for has ended. */
export function stepsOf(graph: Graph): string[][] {
  const depth = depths(graph)
  const steps: string[][] = []
  for (const [name, at] of depth) {
    while (steps.length <= at) steps.push([])
    steps[at]!.push(name)
  }
  return steps
}

/** How many agents must end, one after the other, before this one can begin. */
export function depths(graph: Graph): Map<string, number> {
  const depth = new Map<string, number>()
  for (const name of topologicalOrder(graph)) {
    let deepest = 0
    for (const { from } of graph.needs.get(name)!) deepest = Math.max(deepest, depth.get(from)! + 1)
    depth.set(name, deepest)
  }
  return depth
}

/** The chain that took, or takes, longest: it says what to shorten. */
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
