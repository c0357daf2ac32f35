/** For hints: the formats that `parseSince` accepts. */
export const SINCE_FORMS = 'a duration back from now (30s, 10m, 2h, 1d, 1w, 1h30m) or an ISO 8601 time in UTC'

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
type Unit = keyof typeof UNIT_MS

const DURATION = /^(?:\d{1,9}[smhdw])+$/
const ISO_TIME = /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(Z|[+-]\d{2}:\d{2})?)?$/i

/** Parses a `--since` value; undefined if it is invalid. */
export function parseSince(text: string, now: Date): Date | undefined {
  const trimmed = text.trim()
  if (DURATION.test(trimmed)) {
    let back = 0
    for (const [, count, unit] of trimmed.matchAll(/(\d+)([smhdw])/g))
      back += Number(count) * UNIT_MS[unit as Unit]
    return valid(new Date(now.getTime() - back))
  }
  const iso = ISO_TIME.exec(trimmed)
  if (iso === null) return undefined
  const [, day, time = '00:00', zone = 'Z'] = iso
  // `Date` turns the 31st of February into a day in March.
  if (valid(new Date(day!))?.toISOString().slice(0, 10) !== day) return undefined
  // Without a zone, assume UTC as in the log, not the zone of this machine.
  return valid(new Date(`${day}T${time}${zone.toUpperCase()}`))
}

function valid(date: Date): Date | undefined {
  return Number.isNaN(date.getTime()) ? undefined : date
}
