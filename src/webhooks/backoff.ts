const FIRST_MS = 5000
const LONGEST_MS = 3600_000

/** Twice as long each time, up to an hour; up to half of it at random, so that many don't come back at once. */
export function retryDelay(failures: number, random: () => number): number {
  const whole = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(failures - 1, 20))
  return Math.round(whole * (1 - random() / 2))
}

/** What the receiver asks for: seconds, or a date. Never more than an hour. */
export function retryAfter(header: string | null, now: number): number | undefined {
  if (header === null) return undefined
  const said = header.trim()
  const isDate = /^[A-Z][a-z]{2}, /.test(said)
  const ms = /^\d{1,9}$/.test(said) ? Number(said) * 1000 : isDate ? Date.parse(said) - now : 0
  return Number.isFinite(ms) && ms > 0 ? Math.min(ms, LONGEST_MS) : undefined
}
