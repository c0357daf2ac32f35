/** Controls and marks of direction; the joiner that emoji are made with is none of them. */
const UNSEEN = /(?![\n\t\u{200d}])[\p{Cc}\p{Cf}]/gu

/**
 * What is approved is shown as it is: a character that cannot be seen, or that has others shown in another order, by
 * its number.
 */
export function visible(text: string): string {
  return text.replace(
    UNSEEN,
    (one) => `⟨U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )
}

export function textOf(value: unknown): string {
  if (value === undefined) return ''
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
