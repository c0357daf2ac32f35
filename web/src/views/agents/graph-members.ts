interface GraphMember {
  name: string
  parent?: string | undefined
  session: string
  asks: boolean
}

export interface GraphPart<T> {
  readonly drawn: readonly T[]
  /** How many descendants of a drawn member are not drawn. */
  readonly below: ReadonlyMap<string, number>
}

/**
 * Picks the members to draw, of the whole team or below `root`: first those that need a person, with their ancestors,
 * then level by level from the top while there is room.
 */
export function graphMembers<T extends GraphMember>(
  members: readonly T[],
  most: number,
  root = '',
): GraphPart<T> {
  const byName = new Map<string, GraphMember>(members.map((member) => [member.name, member]))
  const top = byName.has(root) ? root : undefined
  const lines = new Map(members.map((member) => [member.name, ancestryOf(member, byName, top)]))
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

const needsPerson = (member: Pick<GraphMember, 'asks' | 'session'>) => rank(member) < 2

function rank({ asks, session }: Pick<GraphMember, 'asks' | 'session'>): number {
  return asks ? 0 : session === 'error' ? 1 : 2
}

/** Sorts agents with open requests first, then failed ones; the others keep their order. */
export function byNeed(
  one: Pick<GraphMember, 'asks' | 'session'>,
  other: Pick<GraphMember, 'asks' | 'session'>,
) {
  return rank(one) - rank(other)
}

/** The member and its ancestors, up to `top`. */
function ancestryOf(
  member: GraphMember,
  byName: ReadonlyMap<string, GraphMember>,
  top: string | undefined,
): string[] {
  const line: string[] = []
  let next: GraphMember | undefined = member
  while (next !== undefined && !line.includes(next.name)) {
    line.push(next.name)
    if (next.name === top) break
    next = next.parent === undefined ? undefined : byName.get(next.parent)
  }
  return line
}
