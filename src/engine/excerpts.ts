const EXCERPT = 280
/** No secret is longer. */
const LONGEST_SECRET = 8192

/** As much text as `shorten` may have to look at. */
export const LOOKED_AT = EXCERPT + LONGEST_SECRET

/**
 * Beginnings of texts for the audit. What is cut is redacted before, because of half a secret no rule would know the
 * rest; what is whole is redacted with its entry (audit/seal.ts).
 */
export function createExcerpts(redact: (text: string) => string) {
  return (text: string, most = EXCERPT): string =>
    text.length <= most ? text : redact(text.slice(0, most + LONGEST_SECRET)).slice(0, most)
}

export type Excerpt = ReturnType<typeof createExcerpts>
