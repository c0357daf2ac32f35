import type { Path } from './problem.ts'

interface JsonSchema {
  description?: string
  properties?: Record<string, JsonSchema>
  additionalProperties?: JsonSchema | boolean
  items?: JsonSchema
  anyOf?: JsonSchema[]
}

/** What a published schema says of the keys of a document: the words that editors show. */
export interface Description {
  /** Of a key, or of the nearest key around it. */
  describe(path: Path): string
  /** The keys that may stand inside the map at that path. */
  knownKeys(path: Path): string[]
}

/** `smallest`: the smallest document that works, for the hint on the document as a whole. */
export function describeBy(schema: () => Record<string, unknown>, smallest: string): Description {
  let published: JsonSchema | undefined

  /** All the forms a value may have there. */
  function schemasAt(path: Path): JsonSchema[] {
    published ??= schema() as JsonSchema
    return path.reduce<JsonSchema[]>(
      (found, part) => found.flatMap((form) => inside(form, part)),
      forms(published),
    )
  }

  return {
    describe(path) {
      for (let depth = path.length; depth > 0; depth--) {
        const text = schemasAt(path.slice(0, depth)).find((form) => form.description)?.description
        if (text !== undefined) return text
      }
      return `The smallest that works: ${smallest}`
    },
    knownKeys: (path) => schemasAt(path).flatMap((form) => Object.keys(form.properties ?? {})),
  }
}

function inside(schema: JsonSchema, part: string | number): JsonSchema[] {
  if (typeof part === 'number') return forms(schema.items)
  if (schema.properties && Object.hasOwn(schema.properties, part)) return forms(schema.properties[part])
  return typeof schema.additionalProperties === 'object' ? forms(schema.additionalProperties) : []
}

function forms(schema: JsonSchema | undefined): JsonSchema[] {
  return schema === undefined ? [] : [schema, ...(schema.anyOf ?? []).flatMap(forms)]
}
