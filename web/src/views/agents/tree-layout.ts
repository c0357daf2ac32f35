interface Named {
  name: string
  parent?: string | undefined
}

interface Size {
  width: number
  height: number
  gapX: number
  gapY: number
}

/** More children than this wrap into several rows. */
const MAX_COLUMNS = 6

/** Centres each parent above its children; roots stand side by side. */
export function layOutTree(members: readonly Named[], size: Size): Map<string, { x: number; y: number }> {
  const names = new Set(members.map(({ name }) => name))
  const children = new Map<string | undefined, string[]>()
  for (const { name, parent } of members) {
    const above = parent !== undefined && names.has(parent) && parent !== name ? parent : undefined
    children.set(above, [...(children.get(above) ?? []), name])
  }
  const places = new Map<string, { x: number; y: number }>()
  const stepX = size.width + size.gapX
  const stepY = size.height + size.gapY

  /** Returns the width of a branch, in columns. */
  function place(name: string, left: number, depth: number): number {
    const below = (children.get(name) ?? []).filter((child) => !places.has(child))
    places.set(name, { x: left * stepX, y: depth * stepY })
    const isFlat = below.length > MAX_COLUMNS && below.every((child) => !children.has(child))
    let width = 0
    // A grid about as wide as it is high.
    const columns = Math.max(MAX_COLUMNS, Math.ceil(Math.sqrt(below.length)))
    if (isFlat) {
      for (const [index, child] of below.entries()) {
        const row = Math.floor(index / columns)
        places.set(child, {
          x: (left + (index % columns)) * stepX,
          y: (depth + 1) * stepY + row * (size.height + 24),
        })
      }
      width = columns
    } else for (const child of below) width += place(child, left + width, depth + 1)
    width = Math.max(1, width)
    places.set(name, { x: (left + (width - 1) / 2) * stepX, y: depth * stepY })
    return width
  }

  let left = 0
  for (const root of children.get(undefined) ?? []) left += place(root, left, 0)
  // Parents in a cycle have no root.
  for (const { name } of members) if (!places.has(name)) left += place(name, left, 0)
  return places
}
