import 'uplot/dist/uPlot.min.css'
import { useEffect, useMemo, useRef } from 'react'
import UPlot from 'uplot'
import type { AnswerOf } from '../../../../src/api/contract.ts'
import { formatCost, formatDuration } from '../../components/format.ts'
import { QueryResult, Segments, ViewHeader } from '../../components/view-layout.tsx'
import { useServiceQuery } from '../../data/queries.ts'
import { linkTo, useRoute } from '../../route.ts'
import { colour } from '../../theme.ts'

type Figures = AnswerOf<'figures'>
type Series = {
  label: string
  colour: string
  values: (number | null)[]
  isBars?: boolean
  isDotted?: boolean
}

const SPANS = ['15m', '1h', '6h', '24h', '7d'] as const
const SPAN_LINKS = Object.fromEntries(SPANS.map((span) => [span, linkTo('metrics', undefined, { span })]))

export function MetricsView() {
  const { query } = useRoute()
  const chosen = SPANS.find((one) => one === query.get('span')) ?? '1h'
  const answer = useServiceQuery('figures', [chosen])
  return (
    <>
      <ViewHeader title="Metrics" note="from the audit log">
        <Segments chosen={chosen} links={SPAN_LINKS} />
      </ViewHeader>
      <QueryResult answer={answer}>{(figures) => <Plots figures={figures} />}</QueryResult>
    </>
  )
}

function Plots({ figures }: { figures: Figures }) {
  const at = (type: string) => figures.counts[type] ?? figures.cost.map(() => 0)
  const sum = (types: readonly string[]) =>
    figures.cost.map((_, step) => types.reduce((all, type) => all + at(type)[step]!, 0))
  const total = (values: readonly number[]) => values.reduce((all, one) => all + one, 0)
  const accepted = at('message.accepted')
  const read = at('delivery.read')
  const unclear = sum(['delivery.uncertain', 'delivery.failed'])
  const refused = sum(['command.blocked', 'security.forbidden', 'command.refused'])
  const asked = sum(['human.asked'])
  return (
    <div className="plots">
      <Plot
        title="Messages"
        isWhole
        total={total(accepted)}
        figures={figures}
        series={[
          { label: 'accepted', colour: 'busy', values: accepted, isBars: true },
          { label: 'read', colour: 'calm', values: read },
        ]}
      />
      <Plot
        title="Time until read"
        unit="ms"
        isWhole
        figures={figures}
        series={[
          { label: 'median', colour: 'accent', values: figures.read_ms.p50, isDotted: true },
          { label: '95th percentile', colour: 'held', values: figures.read_ms.p95, isDotted: true },
        ]}
      />
      <Plot
        title="Uncertain or failed deliveries"
        isWhole
        total={total(unclear)}
        figures={figures}
        series={[{ label: 'uncertain or failed', colour: 'bad', values: unclear, isBars: true }]}
      />
      <Plot
        title="Refused commands and human requests"
        isWhole
        total={total(refused) + total(asked)}
        figures={figures}
        series={[
          { label: 'refused', colour: 'bad', values: refused, isBars: true },
          { label: 'requests', colour: 'asks', values: asked },
        ]}
      />
      <Plot
        title="Cost"
        total={formatCost(total(figures.cost))}
        figures={figures}
        series={[{ label: 'spent', colour: 'accent', values: figures.cost, isBars: true }]}
      />
    </div>
  )
}

/** Shows the date instead of the time for steps of hours. */
function timeOf(seconds: number, stepMs: number): string {
  const date = new Date(seconds * 1000)
  return stepMs > 1_800_000
    ? date.toLocaleDateString([], { month: 'short', day: 'numeric' })
    : date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', hour12: false })
}

const WHOLE = [1, 2, 5]
  .flatMap((one) => [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8].map((ten) => one * ten))
  .toSorted((one, other) => one - other)

interface PlotOptions {
  title: string
  total?: number | string
  unit?: string
  /** Counts and milliseconds have no fractions on their axis. */
  isWhole?: boolean
  figures: Figures
  series: readonly Series[]
}

function Plot({ title, total, unit, isWhole = false, figures, series }: PlotOptions) {
  const show = (value: number) => (unit === undefined ? value.toLocaleString('en') : formatDuration(value))
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  const data = useMemo<UPlot.AlignedData>(() => {
    const from = Date.parse(figures.from) / 1000
    return [
      figures.cost.map((_, step) => from + (step * figures.step_ms) / 1000),
      // uPlot draws a bar of zero height as a line.
      ...series.map(({ values, isBars }) => (isBars ? values.map((one) => one || null) : values)),
    ]
  }, [figures, series])
  // The plot outlives the values it was created with.
  const latest = useRef({ data, stepMs: figures.step_ms })
  latest.current = { data, stepMs: figures.step_ms }

  useEffect(() => {
    const box = place.current!
    const make = () => {
      plot.current?.destroy()
      const axis = {
        stroke: colour('faint'),
        grid: { stroke: colour('line'), width: 1 },
        ticks: { show: false },
        font: '11px system-ui',
      }
      plot.current = new UPlot(
        {
          width: box.clientWidth,
          height: 170,
          cursor: { sync: { key: 'orchub' }, drag: { x: false, y: false } },
          legend: { show: true, live: true },
          axes: [
            {
              ...axis,
              values: (_, ticks) => ticks.map((tick) => timeOf(tick, latest.current.stepMs)),
              space: 70,
              size: 30,
            },
            {
              ...axis,
              size: 52,
              values: (_, ticks) => ticks.map(show),
              ...(isWhole ? { incrs: WHOLE } : {}),
            },
          ],
          scales: { y: { range: (_, __, most) => [0, Math.max(most ?? 0, 1)] } },
          series: [
            {},
            ...series.map(({ label, colour: name, isBars, isDotted }): UPlot.Series => {
              const ink = colour(name)
              return {
                label,
                value: (_, value, __, step) =>
                  value == null ? (isBars && step != null ? show(0) : '') : show(value),
                stroke: ink,
                width: 1.5,
                spanGaps: false,
                points: { show: isDotted === true, size: 4, fill: ink },
                ...(isBars ? { fill: `${ink}44`, paths: UPlot.paths.bars!({ size: [0.8, 14] }) } : {}),
              }
            }),
          ],
        },
        latest.current.data,
        box,
      )
    }
    make()
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height: 170 }))
    sizes.observe(box)
    addEventListener('orchub-theme', make)
    return () => {
      sizes.disconnect()
      removeEventListener('orchub-theme', make)
      plot.current?.destroy()
    }
  }, [])

  useEffect(() => plot.current?.setData(data), [data])
  return (
    <figure className="plot">
      <figcaption>
        <b>{title}</b>{' '}
        {total === undefined ? null : <span className="label">{total.toLocaleString('en')} total</span>}
      </figcaption>
      <div ref={place} role="img" aria-label={`${title} over time`} />
    </figure>
  )
}
