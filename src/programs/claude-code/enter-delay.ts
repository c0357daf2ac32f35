/** From here on Enter is taken together with a paste; 2.1.197 takes it for a part of the paste. */
const AT_ONCE_SINCE = [2, 1, 325]
const LATER_MS = 150

/** How long after a paste Enter is pressed. */
export function enterDelayOf(version: string): number {
  const numbers = version.split('.').map(Number)
  for (const [index, wanted] of AT_ONCE_SINCE.entries()) {
    const number = numbers[index] ?? 0
    if (number !== wanted) return number > wanted ? 0 : LATER_MS
  }
  return 0
}
