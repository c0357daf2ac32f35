/** Same breakpoint as in styles/phone.css. */
export function isPhone(): boolean {
  return matchMedia('(max-width: 860px)').matches
}
