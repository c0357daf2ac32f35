/** Returns a function that tells whether it gets an id for the first time. It remembers the last `limit` ids. */
export function createSeenIds(limit: number): (id: string) => boolean {
  const seen = new Set<string>()
  return (id) => {
    if (seen.has(id)) return false
    seen.add(id)
    if (seen.size > limit) seen.delete(seen.values().next().value!)
    return true
  }
}
