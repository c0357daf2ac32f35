/** A phone; as in the styles. */
export function isNarrow(): boolean {
  return matchMedia('(max-width: 860px)').matches
}
