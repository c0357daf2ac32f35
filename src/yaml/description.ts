import type { Path } from './problem.ts'

interface JsonSchema {
  description?: string
  properties?: Record<string, JsonSchema>
  additionalProperties?: JsonSchema | boolean
  items?: JsonSchema
  anyOf?: JsonSchema[]
}

/** The descriptions of a published JSON schema, as editors show them. */
export interface Description {
  /** Describes a key, or its nearest ancestor that has a description. */
  describe(path: Path): string
  /** The keys that the map at that path may have. */
  knownKeys(path: Path): string[]
}

/** @param smallest the minimal working document, shown when a hint concerns the whole document */
export function describeBy(schema: () => Record<string, unknown>, smallest: string): Description {
  let published: JsonSchema | undefined

  /** All alternatives that the schema allows at a path. */
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
      return `A minimal example: ${smallest}`
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
