import type { EdgePolicy, Plan, PlanAgent } from '../plan.ts'

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
