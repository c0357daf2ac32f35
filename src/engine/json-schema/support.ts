import type { Schema } from './keyword.ts'
import { ANNOTATIONS, KEYWORDS } from './keywords.ts'

/** What in a schema results could not be checked by. What is not enforced is refused: a result must not seem checked. */
export function unsupportedIn(schema: Schema): string | undefined {
  if (typeof schema === 'boolean') return undefined
  for (const [name, limit] of Object.entries(schema)) {
    if (ANNOTATIONS.has(name) || name.startsWith('x-')) continue
    const keyword = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name]! : undefined
    if (keyword === undefined) return `"${name.slice(0, 60)}" is not supported`
    const read = keyword.shape.safeParse(limit)
    if (!read.success) return `"${name}": ${read.error.issues[0]!.message}`
    const inner = innerOf(limit, keyword.holds)
    for (const one of inner) {
      const found = unsupportedIn(one)
      if (found !== undefined) return found
    }
  }
  return undefined
}

function innerOf(limit: unknown, holds: 'one' | 'list' | 'named' | undefined): Schema[] {
  if (holds === undefined) return []
  return holds === 'named' ? Object.values(limit as Record<string, Schema>) : ([limit].flat() as Schema[])
}
