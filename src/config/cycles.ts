/** The cycles that one reaches by following `next`, each once. */
export function findCycles(next: ReadonlyMap<string, string | undefined>): string[][] {
  const cycles: string[][] = []
  const settled = new Set<string>()
  for (const first of next.keys()) {
    const trail = new Set<string>()
    let name: string | undefined = first
    for (; name !== undefined && !settled.has(name) && !trail.has(name); name = next.get(name))
      trail.add(name)
    const path = [...trail]
    if (name !== undefined && trail.has(name)) cycles.push(path.slice(path.indexOf(name)))
    for (const done of path) settled.add(done)
  }
  return cycles
}
