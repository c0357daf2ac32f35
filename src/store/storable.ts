/**
 * Replaces lone surrogates, which UTF-8 can't hold, and NUL, which PostgreSQL can't. Call it before computing a digest:
 * text that reads back differently would look damaged.
 */
export function storable(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed
}
