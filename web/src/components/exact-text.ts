/** Control and direction characters, except the joiner that emoji use. */
const INVISIBLE = /(?![\n\t\u{200d}])[\p{Cc}\p{Cf}]/gu

/**
 * Shows invisible characters, and those that reorder the text, by their code point: nothing may hide in what a person
 * approves.
 */
export function showInvisible(text: string): string {
  return text.replace(
    INVISIBLE,
    (one) => `⟨U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
}

export function textOf(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
