import { type Graph, topologicalOrder } from '../plan/graph.ts'

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
