import type { Path } from './problem.ts'
import { configJsonSchema, SMALLEST } from './schema.ts'

interface JsonSchema {
  description?: string
  properties?: Record<string, JsonSchema>
  additionalProperties?: JsonSchema | boolean
  items?: JsonSchema
  anyOf?: JsonSchema[]
}

let published: JsonSchema | undefined

/** What the published schema says of a key, or of the nearest key around it: the words that editors show. */
export function describePath(path: Path): string {
  for (let depth = path.length; depth > 0; depth--) {
    const text = schemasAt(path.slice(0, depth)).find((form) => form.description)?.description
    if (text !== undefined) return text
  }
  return `The smallest that works: ${SMALLEST}`
}

/** The keys that may stand inside the map at that path. */
export function knownKeys(path: Path): string[] {
  return schemasAt(path).flatMap((form) => Object.keys(form.properties ?? {}))
}

/** All the forms a value may have there. */
function schemasAt(path: Path): JsonSchema[] {
  published ??= configJsonSchema() as JsonSchema
  return path.reduce<JsonSchema[]>(
    (forms, part) => forms.flatMap((form) => inside(form, part)),
    forms(published),
  )
}

function inside(schema: JsonSchema, part: string | number): JsonSchema[] {
  if (typeof part === 'number') return forms(schema.items)
  if (schema.properties && Object.hasOwn(schema.properties, part)) return forms(schema.properties[part])
  return typeof schema.additionalProperties === 'object' ? forms(schema.additionalProperties) : []
}

function forms(schema: JsonSchema | undefined): JsonSchema[] {
  return schema === undefined ? [] : [schema, ...(schema.anyOf ?? []).flatMap(forms)]
}
