/** One measured figure against its target. `atLeast`: higher is better. */
export interface Figure {
  name: string
  /** The baseline, measured in the same run. */
  baseline: string
  ratio: number
  target: { atLeast: number } | { atMost: number }
  note?: string
}

export function meets({ ratio, target }: Figure): boolean {
  return 'atLeast' in target ? ratio >= target.atLeast : ratio <= target.atMost
}

export function asTable(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { target } = figure
    const wanted = 'atLeast' in target ? `≥ ${target.atLeast}` : `≤ ${target.atMost}`
    const mark = meets(figure) ? 'yes' : '**no**'
    return `| ${figure.name} | ${figure.baseline} | ${round(figure.ratio)} | ${wanted} | ${mark} | ${figure.note ?? ''} |`
  })
  return ['| what | against | ratio | target | reached | |', '|---|---|---|---|---|---|', ...rows].join('\n')
}

function round(ratio: number): string {
  return ratio >= 100 ? ratio.toFixed(0) : ratio >= 10 ? ratio.toFixed(1) : ratio.toFixed(2)
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!
}
