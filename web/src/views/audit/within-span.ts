const UNIT_MS: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
}

/**
 * Those of the entries, newest first, that are still within a span back from now: "the last ten minutes" go on with the
 * time, and what was read within them does not stay in them. A moment, rather than a span, keeps all.
 */
export function stillWithin<Entry extends { at: string }>(
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
