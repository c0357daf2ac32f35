import type { Problem, Schema } from './keyword.ts'
import { KEYWORDS } from './keywords.ts'

/** What is wrong with a value. The schema is one that can be used (`unsupportedIn`). */
export function problemsIn(schema: Schema, value: unknown): Problem[] {
  if (schema === true) return []
  if (schema === false) return [{ path: [], text: 'must not be there' }]
  if (schema.nullable === true && value === null) return []
  return Object.entries(schema).flatMap(([name, limit]) => {
    const keyword = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name] : undefined
    return keyword === undefined ? [] : keyword.check(value, limit as never, schema, problemsIn)
  })
}
