const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** A positive number with a unit: 500ms, 90s, 10m, 1.5h, 3d. Bare numbers are ambiguous and rejected. */
export const DURATION = /^(?!0+(?:\.0+)?[a-z])(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m|h|d)$/

/** Returns milliseconds. The schema must have validated the text. */
export function parseDuration(text: string): number {
  const match = DURATION.exec(text)
  if (match === null) throw new Error(`Not a duration: ${text}`)
  return Math.ceil(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS])
}

/** `350 ms`, `4.2 s`, `3 min 5 s`, `2 h 10 min`. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  const seconds = ms / 1000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
