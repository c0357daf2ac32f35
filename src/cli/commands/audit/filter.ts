import type { AuditEntryAnswer, QueryOf } from '../../../api/contract.ts'

/** The query of the audit for entries that come one by one; what the service's own search does for stored ones. */
export function auditMatcher(query: QueryOf<'audit'>): (entry: AuditEntryAnswer) => boolean {
  const agent = query.agent?.toLowerCase()
  const other = query.with?.toLowerCase()
  const text = query.text?.toLowerCase()
  return (entry) => {
    const parties = [entry.actor.toLowerCase(), entry.subject?.toLowerCase()]
    if (agent !== undefined && !parties.includes(agent)) return false
    if (other !== undefined && (!parties.includes(other) || (agent === other && parties[0] !== parties[1])))
      return false
    if (query.class !== undefined && entry.class !== query.class) return false
    if (query.type !== undefined && !isOfType(entry.type, query.type)) return false
    return text === undefined || `${entry.text}\n${JSON.stringify(entry.data)}`.toLowerCase().includes(text)
  }
}

function isOfType(type: string, wanted: string): boolean {
  return wanted.includes('.') ? type === wanted : type.startsWith(`${wanted}.`)
}
