/** Longer words are unlikely to be typos, and computing the distance takes length² steps. */
const LONGEST = 64

/** Returns the most similar candidate, or undefined when none is close. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  const folded = fold(word)
  if (folded.length === 0 || folded.length > LONGEST) return undefined
  let best: string | undefined
  let least = Math.floor(folded.length / 3) + 1
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - folded.length) >= least || candidate.length > LONGEST) continue
    const apart = distance(folded, fold(candidate))
    if (apart < least) [best, least] = [candidate, apart]
  }
  return best
}

export function didYouMean(word: string, candidates: Iterable<string>, otherwise: string): string {
  const meant = nearest(word, candidates)
  return meant === undefined ? otherwise : `Did you mean "${meant}"?`
}

/** Treats `perMinute`, `per-minute` and `per_minute` as the same word. */
function fold(word: string): string {
  return word
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}

/** Damerau–Levenshtein distance (restricted: neighbours swapped once). */
function distance(a: string, b: string): number {
  let [before, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)]
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + same)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) row[j] = Math.min(row[j]!, before[j - 2]! + 1)
    }
    ;[before, last] = [last, row]
  }
  return last[b.length]!
}
