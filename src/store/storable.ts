/**
 * Lone surrogates do not survive UTF-8, nor NUL PostgreSQL. What would read back changed is changed before it is
 * digested, or the message would look damaged for ever.
 */
export function storable(text: string): string {
  const wellFormed = text.isWellFormed() ? text : text.toWellFormed()
  return wellFormed.includes('\0') ? wellFormed.replaceAll('\0', '\ufffd') : wellFormed
}
