/** Columns side by side, each as wide as its widest cell; the last one is left ragged. */
export function table(
  rows: readonly (readonly string[])[],
  indent = '',
  style = (cell: string, _column: number) => cell,
): string {
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, width(cell))
  }
  return rows
    .map((row) => {
      const cells = row.map((cell, column) => {
        const padding = column === row.length - 1 ? '' : ' '.repeat(widths[column]! - width(cell))
        return style(cell, column) + padding
      })
      return `${indent}${cells.join('  ')}`.trimEnd()
    })
    .join('\n')
}

/** Good enough for names and titles: one place for each character, two for wide ones. */
export function width(text: string): number {
  let sum = 0
  for (const character of text.normalize('NFC')) sum += placesOf(character)
  return sum
}

function placesOf(character: string): number {
  return /[\u1100-\u115f\u2e80-\uffdc]|\p{Emoji_Presentation}/u.test(character) ? 2 : 1
}

/** As much of a line as fits, and a mark where something is missing. */
export function clip(text: string, most: number): string {
  if (width(text) <= most) return text
  let kept = ''
  let used = 1
  for (const character of text.normalize('NFC')) {
    used += placesOf(character)
    if (used > most) break
    kept += character
  }
  return most < 1 ? '' : `${kept}…`
}
