interface Drawable {
  name: string
  parent?: string | undefined
  session: string
  asks: boolean
}

export interface Drawing<T> {
  readonly drawn: readonly T[]
  /** How many there are below a drawn one that are not drawn. */
  readonly below: ReadonlyMap<string, number>
}

/**
 * Of a large team, or of the part of it below `root`: the top, level by level as long as there is room, and whoever
 * needs a person with all above them.
 */
export function worthDrawing<T extends Drawable>(members: readonly T[], most: number, root = ''): Drawing<T> {
  const byName = new Map<string, Drawable>(members.map((member) => [member.name, member]))
  const top = byName.has(root) ? root : undefined
  const lines = new Map(members.map((member) => [member.name, lineOf(member, byName, top)]))
  const part = members.filter(({ name }) => top === undefined || lines.get(name)!.at(-1) === top)
  if (part.length <= most) return { drawn: part, below: new Map() }

  const chosen = new Set<string>()
  const levels = Map.groupBy(part, ({ name }) => lines.get(name)!.length)
  for (const depth of [...levels.keys()].toSorted((one, other) => one - other)) {
    const level = levels.get(depth)!
    if (chosen.size > 0 && chosen.size + level.length > most) break
    for (const { name } of level.slice(0, most)) chosen.add(name)
  }
  for (const { name, asks, session } of part) {
    if (!asks && session !== 'error') continue
    if (chosen.size >= most) break
    for (const above of lines.get(name)!) chosen.add(above)
  }
  const below = new Map<string, number>()
  for (const { name } of part) {
    if (chosen.has(name)) continue
    const above = lines.get(name)!.find((one) => chosen.has(one))
    if (above !== undefined) below.set(above, (below.get(above) ?? 0) + 1)
  }
  return { drawn: part.filter(({ name }) => chosen.has(name)), below }
}

/** It and all above it, up to `top`. */
function lineOf(member: Drawable, byName: ReadonlyMap<string, Drawable>, top: string | undefined): string[] {
  const line: string[] = []
  let next: Drawable | undefined = member
  while (next !== undefined && !line.includes(next.name)) {
    line.push(next.name)
    if (next.name === top) break
    next = next.parent === undefined ? undefined : byName.get(next.parent)
  }
  return line
}
