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
import { readPlainYaml } from './plain-yaml.ts'
import { type Locate, type Path, type Problem, type Report, reportInto } from './problem.ts'

/** Large enough for thousands of agents; small enough that the worst nonsense is read in seconds. */
export const MAX_BYTES = 256 * 1024

/** Anchors may save typing. A few of them inside each other can stand for billions of nodes, so these are counted. */
const MAX_NODES = 100_000

/** After the first few, syntax errors follow from each other, as do those at one place. */
const SYNTAX_ERRORS_SHOWN = 5

export interface YamlSource {
  readonly value: unknown
  readonly locate: Locate
  /** Not empty: the value is not to be used. */
  readonly problems: readonly Problem[]
}

/** Where one node stands, and those inside it. */
interface Place {
  readonly key: number
  readonly value: number
  readonly inside: Map<string | number, Place>
}

export function readYaml(text: string, maxNodes = MAX_NODES): YamlSource {
  const plain = readPlainYaml(text, maxNodes)
  if (plain === undefined) return readWithPlaces(text, maxNodes)
  let source: YamlSource | undefined
  const locate: Locate = (path, what) => {
    source ??= readWithPlaces(text, maxNodes)
    return source.locate(path, what)
  }
  return { value: plain.value, locate, problems: [] }
}

/** Ten times as slow, but it knows where everything stands, and finds the words for what is wrong. */
export function readWithPlaces(text: string, maxNodes = MAX_NODES): YamlSource {
  const lines = new LineCounter()
  const problems: Problem[] = []
  const root: Place = { key: 0, value: 0, inside: new Map() }
  const locate = locator(text, lines, root)
  const report = reportInto(problems, locate)
  // uniqueKeys compares every key with every other, which takes minutes for a large map; the walk does it in one pass.
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

function walk(contents: unknown, root: Place, lines: LineCounter, report: Report, maxNodes: number): unknown {
  const anchors = new Map<string, unknown>()
  let nodes = 0
  let gaveUp = false

  function giveUp(path: Path, message: string, hint: string): null {
    if (!gaveUp) report(path, message, hint)
    gaveUp = true
    return null
  }

  function visit(node: unknown, place: Place, path: Path): unknown {
    if (gaveUp) return null
    if (++nodes > maxNodes)
      return giveUp(
        path.slice(0, 2),
        'The file holds too much',
        `At most ${maxNodes} values, those that aliases stand for included.`,
      )
    if (path.length > DEEPEST)
      return giveUp(path.slice(0, 4), 'is nested too deeply', `At most ${DEEPEST} levels.`)
    if (isAlias(node)) return visitAlias(node.source, place, path)
    if (isScalar(node) || isMap(node) || isSeq(node)) {
      if (node.anchor !== undefined) anchors.set(node.anchor, node)
    }
    if (isMap(node)) return visitMap(node, place, path)
    if (isSeq(node)) {
      return node.items.map((item, index) =>
        visit(item, enter(place, index, start(item, place.value)), [...path, index]),
      )
    }
    return isScalar(node) ? node.value : null
  }

  function visitAlias(name: string, place: Place, path: Path): unknown {
    if (anchors.has(name)) return visit(anchors.get(name), place, path)
    report(
      path,
      `There is no anchor &${name} above`,
      'Define it before it is used, or put text with a leading * in quotes.',
    )
    return null
  }

  function visitMap(map: YAMLMap, place: Place, path: Path): Record<string, unknown> {
    const result: Record<string, unknown> = {}
    for (const pair of map.items) {
      const key = keyText(pair)
      const here = start(pair.key, place.value)
      if (key === undefined) {
        const odd = enter(place, '?', here)
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
        const { line } = lines.linePos(place.inside.get(key)!.key)
        enter(place, key, here)
        report(
          [...path, key],
          `The key "${key}" is there twice, first in line ${line}`,
          'Keep one of the two.',
          'key',
        )
        continue
      }
      const child = enter(place, key, start(pair.value, here), here)
      if (key === '__proto__') report([...path, key], PROTO_MESSAGE, PROTO_HINT, 'key')
      else result[key] = visit(pair.value, child, [...path, key])
    }
    return result
  }

  return visit(contents, root, [])
}

/** The key as it is written, so that an agent may be called `true` or `404` as far as YAML is concerned. */
function keyText(pair: Pair): string | undefined {
  if (!isScalar(pair.key)) return pair.key === null ? '' : undefined
  if (typeof pair.key.value === 'string') return pair.key.value
  return pair.key.source ?? ''
}

function enter(parent: Place, part: string | number, value: number, key = value): Place {
  const place: Place = { key, value, inside: new Map() }
  parent.inside.set(part, place)
  return place
}

function start(node: unknown, otherwise: number): number {
  return isScalar(node) || isMap(node) || isSeq(node) || isAlias(node)
    ? (node.range?.[0] ?? otherwise)
    : otherwise
}

/** The place of a path, or of the nearest thing around it that exists. */
function locator(text: string, lines: LineCounter, root: Place): Locate {
  return (path, what) => {
    let place = root
    let found = 0
    for (const part of path) {
      const next = place.inside.get(part)
      if (next === undefined) break
      place = next
      found++
    }
    // What is missing is best pointed out at the key of the thing it is missing from.
    const offset = what === 'value' && found === path.length ? place.value : place.key
    return positionAt(offset, text, lines)
  }
}

interface Wording {
  /** Where the parser's own words speak to programmers. */
  readonly message?: string
  readonly hint: string
}

const QUOTE_COLON = 'A colon too many: put text that contains ": " in quotes.'

const WORDING: Partial<Record<YAMLError['code'], Wording>> = {
  TAB_AS_INDENT: { hint: 'Indent with spaces; YAML does not take tabs.' },
  BAD_INDENT: { hint: 'A bracket is not closed, or the indentation differs from that of the lines around.' },
  MISSING_CHAR: { hint: 'A bracket, comma, colon or closing quote is missing here or just before.' },
  MULTIPLE_DOCS: {
    message: 'A second document begins',
    hint: 'Remove the "---": the file holds one document.',
  },
  TAG_RESOLVE_FAILED: {
    message: 'Tags are not understood here',
    hint: 'Remove the word that begins with "!".',
  },
  BLOCK_AS_IMPLICIT_KEY: { hint: QUOTE_COLON },
  BLOCK_IN_FLOW: { hint: QUOTE_COLON },
  RESOURCE_EXHAUSTION: { message: 'This is nested too deeply to be read', hint: 'Are all brackets closed?' },
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
