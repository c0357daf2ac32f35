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
 * Of a large team, or of the part of it below `root`: first whoever needs a person, with all above them, then the top,
 * level by level as long as there is room.
 */
export function worthDrawing<T extends Drawable>(members: readonly T[], most: number, root = ''): Drawing<T> {
  const byName = new Map<string, Drawable>(members.map((member) => [member.name, member]))
  const top = byName.has(root) ? root : undefined
  const lines = new Map(members.map((member) => [member.name, lineOf(member, byName, top)]))
  const part = members.filter(({ name }) => top === undefined || lines.get(name)!.at(-1) === top)
  if (part.length <= most) return { drawn: part, below: new Map() }

  const chosen = new Set<string>()
  for (const { name } of part.filter(needsPerson).toSorted(byNeed)) {
    const fresh = lines.get(name)!.filter((above) => !chosen.has(above))
    if (chosen.size + fresh.length <= most) for (const above of fresh) chosen.add(above)
  }
  const levels = Map.groupBy(part, ({ name }) => lines.get(name)!.length)
  for (const [index, depth] of [...levels.keys()].toSorted((one, other) => one - other).entries()) {
    const fresh = levels.get(depth)!.filter(({ name }) => !chosen.has(name))
    const space = most - chosen.size
    if (index > 0 && fresh.length > space) break
    for (const { name } of fresh.slice(0, space)) chosen.add(name)
  }
  const below = new Map<string, number>()
  for (const { name } of part) {
    if (chosen.has(name)) continue
    const above = lines.get(name)!.find((one) => chosen.has(one))
    if (above !== undefined) below.set(above, (below.get(above) ?? 0) + 1)
  }
  return { drawn: part.filter(({ name }) => chosen.has(name)), below }
}

const needsPerson = (member: Pick<Drawable, 'asks' | 'session'>) => rank(member) < 2

function rank({ asks, session }: Pick<Drawable, 'asks' | 'session'>): number {
  return asks ? 0 : session === 'error' ? 1 : 2
}

/** Who asks comes first, then who failed; the others stay in their order. */
export function byNeed(one: Pick<Drawable, 'asks' | 'session'>, other: Pick<Drawable, 'asks' | 'session'>) {
  return rank(one) - rank(other)
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
