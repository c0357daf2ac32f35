import { EVERYONE, RESERVED_NAMES } from '../base/agent.ts'
import { didYouMean } from '../base/suggestion.ts'
import type { Path, Report } from '../yaml/problem.ts'
import { type ConfigInput, SMALLEST } from './schema.ts'

type Agents = ConfigInput['agents']

/** Resolves mentions to canonical names and reports unknown ones. */
export interface Roster {
  readonly names: readonly string[]
  one(mention: string, path: Path): string | undefined
  /** A name, several, or `*`. */
  who(mention: string | readonly string[], path: Path): string[]
}

/** Each suggestion compares with every name, so a file full of errors gets a limited number. */
const SUGGESTIONS = 50

export function readRoster(agents: Agents, report: Report): Roster {
  const names = Object.keys(agents)
  const byFold = new Map<string, string>()
  for (const name of names) {
    const other = byFold.get(name.toLowerCase())
    if (RESERVED_NAMES.has(name.toLowerCase())) {
      report(
        ['agents', name],
        `"${name}" is reserved for the service or its people`,
        'Choose another name for the agent.',
        'key',
      )
    } else if (other !== undefined) {
      const message = `"${other}" and "${name}" differ only in case`
      report(['agents', name], message, 'Rename one of them.', 'key')
    } else byFold.set(name.toLowerCase(), name)
  }
  if (names.length === 0) report(['agents'], 'There are no agents', `A minimal example: ${SMALLEST}`)

  let suggestions = SUGGESTIONS
  function one(mention: string, path: Path): string | undefined {
    const name = byFold.get(mention.toLowerCase())
    if (name === undefined) {
      const shown = names.slice(0, 10).join(', ')
      const otherwise = `The agents are ${shown}${names.length > 10 ? ', …' : ''}.`
      const hint = suggestions-- > 0 ? didYouMean(mention, names, otherwise) : otherwise
      report(path, `There is no agent "${mention.slice(0, 64)}"`, hint)
    }
    return name
  }
  function who(mention: string | readonly string[], path: Path): string[] {
    if (typeof mention === 'string') return mention === EVERYONE ? [EVERYONE] : list(one(mention, path))
    if (mention.includes(EVERYONE) && mention.length > 1) {
      report(path, 'must not combine "*" with names', 'Keep either "*" or the names.')
    }
    return mention.flatMap((name, index) =>
      name === EVERYONE ? [EVERYONE] : list(one(name, [...path, index])),
    )
  }
  return { names, one, who }
}

function list(name: string | undefined): string[] {
  return name === undefined ? [] : [name]
}

/** Parents must lead to a root. Reports each cycle once. */
export function checkParents(parents: ReadonlyMap<string, string>, report: Report): void {
  const settled = new Set<string>()
  for (const first of parents.keys()) {
    const trail: string[] = []
    const seen = new Set<string>()
    let name: string | undefined = first
    while (name !== undefined && !settled.has(name) && !seen.has(name)) {
      seen.add(name)
      trail.push(name)
      name = parents.get(name)
    }
    if (name !== undefined && seen.has(name)) reportCircle(trail.slice(trail.indexOf(name)), report)
    for (const done of trail) settled.add(done)
  }
}

function reportCircle(circle: readonly string[], report: Report): void {
  const first = circle[0]!
  const shown = circle.length > 8 ? [...circle.slice(0, 8), '…'] : circle
  const message =
    circle.length === 1
      ? `"${first}" is its own parent`
      : `The parents form a cycle: ${[...shown, first].join(' → ')}`
  report(['agents', first, 'parent'], message, 'Remove the parent of the agent at the top.')
}
