/** A line diff of two texts. */
type Line = { kind: 'same' | 'out' | 'in'; text: string }

/** Larger texts are shown one after the other: the comparison table would take too much memory. */
const MAX_CELLS = 400_000

export function diffLines(before: string, after: string): Line[] {
  const one = before.split('\n')
  const other = after.split('\n')
  if (one.length * other.length > MAX_CELLS) {
    return [
      ...one.map((text): Line => ({ kind: 'out', text })),
      ...other.map((text): Line => ({ kind: 'in', text })),
    ]
  }
  const width = other.length + 1
  const common = new Uint32Array((one.length + 1) * width)
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      common[i * width + j] =
        one[i] === other[j]
          ? common[(i + 1) * width + j + 1]! + 1
          : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
    }
  }
  const lines: Line[] = []
  let i = 0
  let j = 0
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) {
      lines.push({ kind: 'same', text: one[i]! })
      i++
      j++
    } else if (
      j >= other.length ||
      (i < one.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
    ) {
      lines.push({ kind: 'out', text: one[i++]! })
    } else lines.push({ kind: 'in', text: other[j++]! })
  }
  return lines
}
