import type { EdgePolicy } from '../plan.ts'
import type { NodeState } from '../run.ts'
import type { Graph } from './graph.ts'

/** What Mermaid draws without being told otherwise. */
export const MAX_EDGES = 500

const ARROWS: Record<EdgePolicy, string> = { fail: '-->', skip: '-- skip -->', proceed: '-. proceed .->' }

/** Green, red, grey, blue: an end, or something going on. States that wait have no colour. */
const COLOURS: Partial<Record<NodeState, string>> = {
  completed: 'fill:#d8f0dc,stroke:#2e7d43',
  failed: 'fill:#f8d7d7,stroke:#b3261e',
  skipped: 'fill:#ececec,stroke:#757575',
  cancelled: 'fill:#ececec,stroke:#757575',
  running: 'fill:#d7e6f8,stroke:#1e5fb3',
  validating: 'fill:#d7e6f8,stroke:#1e5fb3',
}

/** A flowchart in the words of Mermaid. Agents get numbers for ids, so that no name can be taken for syntax. */
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

/** Everything but letters, digits and harmless marks by number, as Mermaid reads it. */
function escapeLabel(text: string): string {
  return [...text.slice(0, 200)]
    .map((letter) => (/[\p{L}\p{N} _.,:()/-]/u.test(letter) ? letter : `#${letter.codePointAt(0)};`))
    .join('')
}
