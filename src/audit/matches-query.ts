import type { AuditEntry } from './entry.ts'

type Searched = 'agent' | 'with' | 'type' | 'class' | 'text'
type LiveEntry = Pick<AuditEntry, 'type' | 'class' | 'actor' | 'text' | 'data'> & {
  subject?: string | undefined
}

/** Filters live entries as the store's search filters stored ones. */
export function matchesQuery(
  query: { readonly [field in Searched]?: string | undefined },
  entry: LiveEntry,
): boolean {
  const actor = entry.actor.toLowerCase()
  const subject = entry.subject?.toLowerCase()
  const agent = query.agent?.toLowerCase()
  const other = query.with?.toLowerCase()
  const involves = (name: string) => actor === name || subject === name
  if (agent !== undefined && !involves(agent)) return false
  if (other !== undefined && (!involves(other) || (agent === other && actor !== subject))) return false
  if (query.class !== undefined && entry.class !== query.class) return false
  if (query.type !== undefined && !isOfType(entry.type, query.type)) return false
  const text = `${entry.text}\n${JSON.stringify(entry.data)}`.toLowerCase()
  return query.text === undefined || text.includes(query.text.toLowerCase())
}

function isOfType(type: string, wanted: string): boolean {
  return wanted.includes('.') ? type === wanted : type.startsWith(`${wanted}.`)
}
