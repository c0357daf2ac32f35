const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** A positive number with a unit: 500ms, 90s, 10m, 1.5h, 3d. Bare numbers are ambiguous and rejected. */
export const DURATION = /^(?!0+(?:\.0+)?[a-z])(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|m|h|d)$/

/** Returns milliseconds. The schema must have validated the text. */
export function parseDuration(text: string): number {
  const match = DURATION.exec(text)
  if (match === null) throw new Error(`Not a duration: ${text}`)
  return Math.ceil(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS])
}
