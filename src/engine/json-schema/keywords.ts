/** The keywords of a JSON schema, as its draft 2020-12 has them, but for references and patterns. */
import { COMBINATIONS } from './combinations.ts'
import type { Keyword } from './keyword.ts'
import { LISTS } from './lists.ts'
import { OBJECTS } from './objects.ts'
import { VALUES } from './values.ts'

export const KEYWORDS: Readonly<Record<string, Keyword>> = {
  ...VALUES,
  ...LISTS,
  ...OBJECTS,
  ...COMBINATIONS,
}

/** They say something to the reader, and ask nothing of a value. */
export const ANNOTATIONS: ReadonlySet<string> = new Set([
  ...['title', 'description', 'default', 'example', 'examples', 'deprecated', 'readOnly', 'writeOnly'],
  ...['$schema', '$id', 'id', '$comment', '$anchor', '$defs', 'definitions'],
  ...['contentEncoding', 'contentMediaType', 'contentSchema', 'propertyOrdering'],
])
