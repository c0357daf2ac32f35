export type Redact = (text: string) => string

const EXCERPT = 280
/** Longer than any known secret, multi-line private keys included. */
const LONGEST_SECRET = 8192

/**
 * The beginning of a text, for the audit, people and agents. Redacts before cutting, because no rule recognizes half a
 * secret. Never splits a surrogate pair.
 */
export function redactedExcerpt(redact: Redact, text: string, most = EXCERPT): string {
  const read = text.slice(0, most + LONGEST_SECRET)
  const redacted = redact(read)
  // Markers are shorter than the secrets they replace, so the end of `read`, possibly half a secret, may have moved into view.
  const isWhole = read.length === text.length || redacted.length >= read.length
  return beginning(isWhole ? redacted : redact(text), most)
}

/** `redactedExcerpt` with `redact` already bound. */
export type RedactedExcerpt = (text: string, most?: number) => string

/** Cuts text that was already redacted. */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text
  const isPairSplit = /[\ud800-\udbff]/.test(text[most - 1] ?? '') && /[\udc00-\udfff]/.test(text[most]!)
  return text.slice(0, isPairSplit ? most - 1 : most)
}

/** The beginning and the end of a text, for a model's prompt, with the number of characters omitted between them. */
export function excerpt(text: string, most: number): string {
  const points = text.toWellFormed()
  if (points.length <= most) return points
  const head = points.slice(0, Math.ceil(most / 2)).toWellFormed()
  const tail = points.slice(points.length - Math.floor(most / 2)).toWellFormed()
  return `${head}\n[… ${points.length - most} characters left out …]\n${tail}`
}
