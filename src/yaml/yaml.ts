import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
  type YAMLError,
  type YAMLMap,
} from 'yaml'
import { positionAt } from './excerpt.ts'
import { DEEPEST, PROTO_HINT, PROTO_MESSAGE } from './plain.ts'
import { type Locate, type Path, type Problem, type Report, reportInto } from './problem.ts'

/** Large enough for thousands of agents, small enough that the worst input parses in seconds. */
export const MAX_BYTES = 256 * 1024

/** Nested aliases can expand to billions of nodes, so each expanded node counts. */
const MAX_NODES = 100_000

/** Later syntax errors usually follow from the first ones. */
const SYNTAX_ERRORS_SHOWN = 5

interface YamlSource {
  readonly value: unknown
  readonly locate: Locate
  /** When there are any, don't use the value. */
  readonly problems: readonly Problem[]
}

/** Source offsets of a node and of its children. */
interface NodeOffsets {
  readonly key: number
  readonly value: number
  readonly inside: Map<string | number, NodeOffsets>
}

export function readYaml(text: string, maxNodes = MAX_NODES): YamlSource {
  const lines = new LineCounter()
  const problems: Problem[] = []
  const root: NodeOffsets = { key: 0, value: 0, inside: new Map() }
  const locate = locator(text, lines, root)
  const report = reportInto(problems, locate)
  // `uniqueKeys` compares every pair of keys, which takes minutes for a large map; `walk` finds duplicates in one pass.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'error',
  })
  const mistakes = [...document.errors, ...document.warnings]
  if (mistakes.length > 0) return { value: null, locate, problems: syntaxProblems(mistakes, text, lines) }
  const value = walk(document.contents, root, lines, report, maxNodes)
  return { value, locate, problems }
}

function walk(
  contents: unknown,
  root: NodeOffsets,
  lines: LineCounter,
  report: Report,
  maxNodes: number,
): unknown {
  const anchors = new Map<string, unknown>()
  let nodes = 0
  let gaveUp = false

  function giveUp(path: Path, message: string, hint: string): null {
    if (!gaveUp) report(path, message, hint)
    gaveUp = true
    return null
  }

  function visit(node: unknown, offsets: NodeOffsets, path: Path): unknown {
    if (gaveUp) return null
    if (++nodes > maxNodes)
      return giveUp(
        path.slice(0, 2),
        'The file holds too many values',
        `At most ${maxNodes} values, counting everything that aliases expand to.`,
      )
    if (path.length > DEEPEST)
      return giveUp(path.slice(0, 4), 'is nested too deeply', `At most ${DEEPEST} levels.`)
    if (isAlias(node)) return visitAlias(node.source, offsets, path)
    if (isScalar(node) || isMap(node) || isSeq(node)) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
    }
    if (isMap(node)) return visitMap(node, offsets, path)
    if (isSeq(node)) {
      return node.items.map((item, index) =>
        visit(item, enter(offsets, index, start(item, offsets.value)), [...path, index]),
      )
    }
    return isScalar(node) ? node.value : null
  }

  function visitAlias(name: string, offsets: NodeOffsets, path: Path): unknown {
    if (anchors.has(name)) return visit(anchors.get(name), offsets, path)
    report(
      path,
      `There is no anchor &${name} above this line`,
      'Define the anchor before using it, or quote text that starts with *.',
    )
    return null
  }

  function visitMap(map: YAMLMap, offsets: NodeOffsets, path: Path): Record<string, unknown> {
    const result: Record<string, unknown> = {}
    for (const pair of map.items) {
      const key = keyText(pair)
      const here = start(pair.key, offsets.value)
      if (key === undefined) {
        const odd = enter(offsets, '?', here)
        report(
          [...path, '?'],
          'A key must be a plain word',
          'Remove the "?" or the brackets around it.',
          'key',
        )
        visit(pair.value, odd, [...path, '?'])
        continue
      }
      if (Object.hasOwn(result, key)) {
        const { line } = lines.linePos(offsets.inside.get(key)!.key)
        enter(offsets, key, here)
        report(
          [...path, key],
          `The key "${key}" appears twice, first in line ${line}`,
          'Keep one of the two.',
          'key',
        )
        continue
      }
      const child = enter(offsets, key, start(pair.value, here), here)
      if (key === '__proto__') report([...path, key], PROTO_MESSAGE, PROTO_HINT, 'key')
      else result[key] = visit(pair.value, child, [...path, key])
    }
    return result
  }

  return visit(contents, root, [])
}

/** Returns the key as written: `true` and `404` stay text. */
function keyText(pair: Pair): string | undefined {
  if (!isScalar(pair.key)) return pair.key === null ? '' : undefined
  if (typeof pair.key.value === 'string') return pair.key.value
  return pair.key.source ?? ''
}

function enter(parent: NodeOffsets, part: string | number, value: number, key = value): NodeOffsets {
  const offsets: NodeOffsets = { key, value, inside: new Map() }
  parent.inside.set(part, offsets)
  return offsets
}

function start(node: unknown, otherwise: number): number {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node)
    ? (node.range?.[0] ?? otherwise)
    : otherwise
}

/** Locates a path, or its nearest ancestor that exists. */
function locator(text: string, lines: LineCounter, root: NodeOffsets): Locate {
  return (path, what) => {
    let offsets = root
    let found = 0
    for (const part of path) {
      const next = offsets.inside.get(part)
      if (next === undefined) break
      offsets = next
      found++
    }
    // A missing value is reported at the key of its nearest ancestor.
    const offset = what === 'value' && found === path.length ? offsets.value : offsets.key
    return positionAt(offset, text, lines)
  }
}

interface Wording {
  /** Replaces the parser's message, which is written for programmers. */
  readonly message?: string
  readonly hint: string
}

const QUOTE_COLON = 'Unexpected colon: quote text that contains ": ".'

const WORDING: Partial<Record<YAMLError['code'], Wording>> = {
  TAB_AS_INDENT: { hint: 'Indent with spaces; YAML does not allow tabs.' },
  BAD_INDENT: { hint: 'Close the bracket, or align the indentation with the lines around it.' },
  MISSING_CHAR: { hint: 'Add the missing bracket, comma, colon or closing quote here or just before.' },
  MULTIPLE_DOCS: {
    message: 'A second document begins here',
    hint: 'Remove the "---": the file must hold a single document.',
  },
  TAG_RESOLVE_FAILED: {
    message: 'Tags are not supported',
    hint: 'Remove the word that starts with "!".',
  },
  BLOCK_AS_IMPLICIT_KEY: { hint: QUOTE_COLON },
  BLOCK_IN_FLOW: { hint: QUOTE_COLON },
  RESOURCE_EXHAUSTION: {
    message: 'The brackets are nested too deeply',
    hint: 'Check that every bracket is closed.',
  },
  BAD_DQ_ESCAPE: { hint: 'Use single quotes for text with backslashes.' },
}

function syntaxProblems(errors: readonly YAMLError[], text: string, lines: LineCounter): Problem[] {
  const first = new Map<number, YAMLError>()
  for (const error of errors) {
    if (!first.has(error.pos[0])) first.set(error.pos[0], error)
    if (first.size === SYNTAX_ERRORS_SHOWN) break
  }
  return [...first].map(([offset, { code, message }]) => {
    const worded: Wording = WORDING[code] ?? {
      hint: 'Check brackets, quotes, colons and indentation here and in the line above.',
    }
    return { ...positionAt(offset, text, lines), path: '', message, ...worded }
  })
}
