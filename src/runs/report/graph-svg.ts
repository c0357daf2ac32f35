import { type Graph, stepsOf } from '../plan.ts'
import type { NodeState } from '../run.ts'
import { escapeHtml, shortened } from './text.ts'

const BOX = { width: 168, height: 40, gapAcross: 20, gapAlong: 48, margin: 12 }

/** More steps than this are drawn from top to bottom: pages scroll that way. */
const STEPS_ACROSS = 8

interface BoxPosition {
  x: number
  y: number
}

/** The graph as a picture: one column, or row, for each step. Its colours are classes of the page around it. */
export function graphSvg(graph: Graph, state: (name: string) => NodeState): string {
  const steps = arranged(graph)
  const isWide = steps.length <= STEPS_ACROSS
  const places = new Map<string, BoxPosition>()
  for (const [step, names] of steps.entries()) {
    for (const [index, name] of names.entries()) {
      const along = BOX.margin + step * ((isWide ? BOX.width : BOX.height) + BOX.gapAlong)
      const across = BOX.margin + index * ((isWide ? BOX.height : BOX.width) + BOX.gapAcross)
      places.set(name, isWide ? { x: along, y: across } : { x: across, y: along })
    }
  }
  const all = [...places.values()]
  const width = farthest(all, 'x') + BOX.width + BOX.margin
  const height = farthest(all, 'y') + BOX.height + BOX.margin
  const edges = [...graph.needs.values()].flatMap((needs) =>
    needs.map(({ from, to, onFailure }) => line(places.get(from)!, places.get(to)!, isWide, onFailure)),
  )
  const boxes = [...places].map(([name, place]) => box(name, state(name), place))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="The graph of agents">`,
    ...edges,
    ...boxes,
    '</svg>',
  ].join('\n')
}

function farthest(places: readonly BoxPosition[], axis: 'x' | 'y'): number {
  return places.reduce((most, place) => Math.max(most, place[axis]), 0)
}

/** In each step, agents stand near what they wait for: by the mean place of it. */
function arranged(graph: Graph): string[][] {
  const place = new Map<string, number>()
  return stepsOf(graph).map((names) => {
    const wish = new Map(
      names.map((name, index) => {
        const needs = graph.needs.get(name)!
        const sum = needs.reduce((total, { from }) => total + place.get(from)!, 0)
        return [name, needs.length === 0 ? index : sum / needs.length]
      }),
    )
    const sorted = names.toSorted((a, b) => wish.get(a)! - wish.get(b)!)
    for (const [index, name] of sorted.entries()) place.set(name, index)
    return sorted
  })
}

function line(from: BoxPosition, to: BoxPosition, isWide: boolean, policy: string): string {
  const [x1, y1] = isWide
    ? [from.x + BOX.width, from.y + BOX.height / 2]
    : [from.x + BOX.width / 2, from.y + BOX.height]
  const [x2, y2] = isWide ? [to.x, to.y + BOX.height / 2] : [to.x + BOX.width / 2, to.y]
  const bend = BOX.gapAlong / 2
  const curve = isWide
    ? `C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`
    : `C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`
  return `<path class="edge ${policy}" d="M${x1} ${y1}${curve}"/>`
}

function box(name: string, state: NodeState, { x, y }: BoxPosition): string {
  const label = escapeHtml(shortened(name, 22))
  return [
    `<g class="node ${state}"><title>${escapeHtml(name)}: ${state}</title>`,
    `<rect x="${x}" y="${y}" width="${BOX.width}" height="${BOX.height}" rx="6"/>`,
    `<text x="${x + BOX.width / 2}" y="${y + 17}">${label}</text>`,
    `<text class="state" x="${x + BOX.width / 2}" y="${y + 32}">${state}</text></g>`,
  ].join('')
}
