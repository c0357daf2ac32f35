import { costByStep, countByStep, readingTimes, type Span } from '../../../messages/store/figures.ts'
import type { RouteHandler } from '../call.ts'

const SPANS = {
  '15m': 15 * 60_000,
  '1h': 3600_000,
  '6h': 6 * 3600_000,
  '24h': 24 * 3600_000,
  '7d': 7 * 24 * 3600_000,
}
const STEPS = 60
const SAMPLES = 5000

/** What happened over time, counted from the audit. */
export const showFigures: RouteHandler<'figures'> = async ({ engine }, { query }) => {
  const { store, clock } = engine
  const stepMs = SPANS[query.span] / STEPS
  // Steps begin at round times, so that a figure does not change only because it is asked for later.
  const from = (Math.floor(clock.now() / stepMs) - STEPS + 1) * stepMs
  const span: Span = { from, stepMs, steps: STEPS }
  const [counted, spent, reading] = await Promise.all([
    countByStep(store, span),
    costByStep(store, span),
    readingTimes(store, span, SAMPLES),
  ])
  const counts: Record<string, number[]> = {}
  for (const { step, type, count } of counted) {
    counts[type] ??= zeros()
    counts[type][step] = count
  }
  const cost = zeros()
  for (const one of spent) cost[one.step] = one.cost
  const times = Array.from({ length: STEPS }, (): number[] => [])
  for (const { step, ms } of reading) times[step]!.push(ms)
  return {
    from: new Date(from).toISOString(),
    step_ms: stepMs,
    counts,
    cost,
    read_ms: { p50: times.map((all) => quantile(all, 0.5)), p95: times.map((all) => quantile(all, 0.95)) },
  }
}

function zeros(): number[] {
  return new Array<number>(STEPS).fill(0)
}

/** Null where there is nothing to tell. */
function quantile(values: readonly number[], part: number): number | null {
  if (values.length === 0) return null
  const sorted = values.toSorted((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!
}
