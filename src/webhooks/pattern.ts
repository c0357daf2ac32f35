import type { AuditClass } from '../audit/entry.ts'

/** What webhooks say of themselves is not sent by them: it would go round in circles. */
const OWN = 'webhook.'

/** Private entries are sent only where their type is named in full. */
export function isWanted(
  patterns: readonly string[],
  { type, class: kind }: { type: string; class: AuditClass },
): boolean {
  if (type.startsWith(OWN)) return false
  if (patterns.includes(type)) return true
  if (kind === 'private') return false
  return patterns.some(
    (pattern) => pattern === '*' || (pattern.endsWith('.*') && type.startsWith(pattern.slice(0, -1))),
  )
}
