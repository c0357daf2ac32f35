const UNIT_MS: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/**
 * Drops entries that have become older than a span such as `10m`, so that "the last ten minutes" moves with the clock.
 * Expects entries newest first. A date instead of a span keeps all of them.
 */
export function withinSpan<Entry extends { at: string }>(
  entries: readonly Entry[] | undefined,
  since: string,
  now: number,
): readonly Entry[] | undefined {
  if (entries === undefined || !/^(?:\d{1,9}[smhdw])+$/.test(since)) return entries
  let back = 0
  for (const [, count, unit] of since.matchAll(/(\d+)([smhdw])/g)) back += Number(count) * UNIT_MS[unit!]!
  const first = entries.findIndex(({ at }) => Date.parse(at) < now - back)
  return first < 0 ? entries : entries.slice(0, first)
}
