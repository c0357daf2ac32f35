import { type EdgePolicy, type Graph, stepsOf, topologicalOrder } from '../plan.ts'
import type { NodeState } from '../run.ts'

/** Draws the graph of a plan for a terminal or for Mermaid. */

interface DrawingOptions {
  /** Draws without box characters. */
  readonly ascii?: boolean
  /** Width of the terminal in columns. */
  readonly width?: number
  /** Text after the name: a state, a runner. */
  readonly note?: (name: string) => string
}

const UNICODE = { first: '╭ ', middle: '├ ', last: '╰ ', only: '─ ', branch: '├─', rail: '│ ', cut: '…' }
const ASCII: typeof UNICODE = {
  first: '/ ',
  middle: '+ ',
  last: '\\ ',
  only: '- ',
  branch: '|-',
  rail: '| ',
  cut: '~',
}

const OTHERS_SHOWN = 3

/**
 * Draws a tree: each agent is below its last dependency, and its other dependencies are listed after its name. The largest
 * subtree continues in the same column and only the others branch off, so no line is indented more than log₂ of the number
 * of agents.
 */
export function drawGraph(
  graph: Graph,
  { ascii = false, width = 100, note = () => '' }: DrawingOptions = {},
): string {
  const marks = ascii ? ASCII : UNICODE
  const { roots, followers, main } = forest(graph)
  const lines: string[] = []

  const label = (name: string) => {
    const needs = graph.needs.get(name)!
    const mainEdge = needs.find(({ from }) => from === main.get(name))
    const others = needs.filter((edge) => edge !== mainEdge)
    const shown = others.slice(0, OTHERS_SHOWN).map(({ from, onFailure }) => from + inBrackets(onFailure))
    const more = others.length > shown.length ? ` and ${others.length - shown.length} more` : ''
    return [
      name + inBrackets(mainEdge?.onFailure ?? 'fail'),
      note(name),
      shown.length === 0 ? '' : `also after ${shown.join(', ')}${more}`,
    ]
      .filter((text) => text !== '')
      .join('  ')
  }

  /** Draws one column: a chain of agents with their branches. */
  const drawColumn = (start: string, indent: string, lead: string) => {
    let opening = lead
    for (let name: string | undefined = start, isFirst = true; name !== undefined; isFirst = false) {
      const [next, ...branches]: string[] = followers.get(name)!
      const mark =
        next === undefined ? (isFirst ? marks.only : marks.last) : isFirst ? marks.first : marks.middle
      lines.push(cut(opening + mark + label(name), width, marks.cut))
      for (const branch of branches) drawColumn(branch, indent + marks.rail, indent + marks.branch)
      opening = indent
      name = next
    }
  }

  for (const root of roots) drawColumn(root, '', '')
  return lines.join('\n')
}

/** Names the policy of an edge unless it is the default. */
function inBrackets(policy: EdgePolicy): string {
  return policy === 'fail' ? '' : ` (or ${policy})`
}

interface Forest {
  roots: string[]
  /** The largest subtree first, the others in the order of the plan. */
  followers: Map<string, string[]>
  main: Map<string, string>
}

function forest(graph: Graph): Forest {
  const order = topologicalOrder(graph)
  const position = new Map(order.map((name, index) => [name, index]))
  const main = new Map<string, string>()
  const size = new Map(order.map((name) => [name, 1]))
  const followers = new Map<string, string[]>(order.map((name) => [name, []]))
  for (const name of order) {
    let last: string | undefined
    for (const { from } of graph.needs.get(name)!) {
      if (last === undefined || position.get(from)! > position.get(last)!) last = from
    }
    if (last === undefined) continue
    main.set(name, last)
    followers.get(last)!.push(name)
  }
  for (const name of order.toReversed()) {
    const parent = main.get(name)
    if (parent !== undefined) size.set(parent, size.get(parent)! + size.get(name)!)
  }
  for (const list of followers.values()) {
    const largest = list.reduce(
      (best, name, index) => (size.get(name)! > size.get(list[best]!)! ? index : best),
      0,
    )
    if (largest > 0) list.unshift(...list.splice(largest, 1))
  }
  return { roots: order.filter((name) => !main.has(name)), followers, main }
}

/** Lists the steps that run in parallel. */
export function drawSteps(graph: Graph, { width = 100 }: Pick<DrawingOptions, 'width'> = {}): string {
  const steps = stepsOf(graph)
  const gutter = String(steps.length).length + 2
  return steps
    .map((names, index) => {
      const number = `${index + 1}.`.padStart(gutter - 1)
      return `${number} ${wrapped(names, width - gutter).join(`\n${' '.repeat(gutter)}`)}`
    })
    .join('\n')
}

function wrapped(names: readonly string[], width: number): string[] {
  const lines = ['']
  for (const [index, name] of names.entries()) {
    const item = index < names.length - 1 ? `${name},` : name
    const line = lines.at(-1)!
    if (line !== '' && line.length + 1 + item.length > width) lines.push(item)
    else lines[lines.length - 1] = line === '' ? item : `${line} ${item}`
  }
  return lines
}

/** Removes control characters from names and notes, which may come from others, and clips the line. */
function cut(line: string, width: number, mark: string): string {
  const plain = line.replace(/[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, ' ').trimEnd()
  return plain.length > width ? plain.slice(0, Math.max(0, width - 1)) + mark : plain
}

/** Mermaid's default limit. */
export const MAX_EDGES = 500

const ARROWS: Record<EdgePolicy, string> = { fail: '-->', skip: '-- skip -->', proceed: '-. proceed .->' }

/** Waiting states have no colour. */
const COLOURS: Partial<Record<NodeState, string>> = {
  completed: 'fill:#d8f0dc,stroke:#2e7d43',
  failed: 'fill:#f8d7d7,stroke:#b3261e',
  skipped: 'fill:#ececec,stroke:#757575',
  cancelled: 'fill:#ececec,stroke:#757575',
  running: 'fill:#d7e6f8,stroke:#1e5fb3',
  validating: 'fill:#d7e6f8,stroke:#1e5fb3',
}

/** Writes a Mermaid flowchart. Agents get numbers as ids, so that no name is read as syntax. */
export function mermaidOf(graph: Graph, state?: (name: string) => NodeState): string {
  const ids = new Map([...graph.agents.keys()].map((name, index) => [name, `n${index}`]))
  const nodes = [...ids].map(([name, id]) => {
    const now = state?.(name)
    const label = now === undefined ? name : `${name}: ${now}`
    return `  ${id}["${escapeLabel(label)}"]${now !== undefined && COLOURS[now] ? `:::${now}` : ''}`
  })
  const edges = [...graph.needs.values()].flatMap((needs) =>
    needs.map(({ from, to, onFailure }) => `  ${ids.get(from)} ${ARROWS[onFailure]} ${ids.get(to)}`),
  )
  const classes =
    state === undefined ? [] : Object.entries(COLOURS).map(([name, style]) => `  classDef ${name} ${style}`)
  const note = edges.length > MAX_EDGES ? [`%% ${edges.length} edges: raise maxEdges of the renderer`] : []
  return [...note, 'flowchart TD', ...nodes, ...edges, ...classes, ''].join('\n')
}

/** Escapes everything but letters, digits and harmless punctuation by code point. */
function escapeLabel(text: string): string {
  return [...text.slice(0, 200)]
    .map((letter) => (/[\p{L}\p{N} _.,:()/-]/u.test(letter) ? letter : `#${letter.codePointAt(0)};`))
    .join('')
}
