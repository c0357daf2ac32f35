import type { ModelReply, ModelRequest } from './play.ts'

type Schema = {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  properties?: Record<string, Schema>
  items?: Schema
  minItems?: number
  minimum?: number
  anyOf?: Schema[]
}

/** Programs ask for titles, summaries and checks beside the conversation. The plainest valid answer changes nothing. */
export function answerSideCall({ schema }: ModelRequest): ModelReply {
  return { text: schema === undefined ? 'Scripted title' : JSON.stringify(dullest(schema as Schema)) }
}

function dullest(schema: Schema, name = ''): unknown {
  // Gemini asks who speaks next; `model` would make it continue by itself.
  if (name === 'next_speaker') return 'user'
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf?.[0]) return dullest(schema.anyOf[0], name)
  const type = (Array.isArray(schema.type) ? schema.type[0] : schema.type)?.toLowerCase()
  switch (type) {
    case 'object': {
      const properties = Object.entries(schema.properties ?? {})
      return Object.fromEntries(properties.map(([key, value]) => [key, dullest(value, key)]))
    }
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => dullest(schema.items ?? {}))
    case 'number':
      return schema.minimum ?? 0
    // Gemini's scores begin at 1, which its schema does not say.
    case 'integer':
      return schema.minimum ?? 1
    case 'boolean':
      return false
    case 'null':
      return null
    default:
      return 'scripted'
  }
}
