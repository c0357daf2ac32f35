import { isUtf8 } from 'node:buffer'
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
import { formatBytes } from '../base/bytes.ts'
import type { Result } from '../base/result.ts'
import {
  type Locate,
  type Path,
  type Problem,
  type Report,
  reportInto,
  type SourceExcerpt,
  sortProblems,
} from './problem.ts'

/** Large enough for thousands of agents, small enough that the worst input parses in seconds. */
export const MAX_BYTES = 256 * 1024

/** Nested aliases can expand to billions of nodes, so each expanded node counts. */
const MAX_NODES = 100_000

/** Later syntax errors usually follow from the first ones. */
const SYNTAX_ERRORS_SHOWN = 5

/** Plain data, with the positions of its keys if it came from a file. */
interface SourceData {
  readonly value: unknown
  readonly locate: Locate
}

export type ReadSource = Result<SourceData, readonly Problem[]>

interface YamlOptions {
  readonly maxBytes?: number
  readonly maxNodes?: number
  /** A minimal working document, for the hint about an empty file. */
  readonly example: string
}

/** Source offsets of a node and of its children. */
interface NodeOffsets {
  readonly key: number
  readonly value: number
  readonly inside: Map<string | number, NodeOffsets>
}

/** Reads a file that a person wrote. Never throws because of the content. */
export function readYaml(
  source: string | Uint8Array,
  { maxBytes = MAX_BYTES, maxNodes = MAX_NODES, example }: YamlOptions,
): ReadSource {
  if (source.length > maxBytes) return { ok: false, error: [tooLarge(maxBytes)] }
  const decoded = decodeUtf8(source)
  if (!decoded.ok) return { ok: false, error: [decoded.error] }
  const text = decoded.value
  const lines = new LineCounter()
  // `uniqueKeys` compares every pair of keys, which takes minutes for a large map; `walk` finds duplicates in one pass.
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'error',
  })
  const mistakes = [...document.errors, ...document.warnings]
  if (mistakes.length > 0) return { ok: false, error: sortProblems(syntaxProblems(mistakes, text, lines)) }
  const root: NodeOffsets = { key: 0, value: 0, inside: new Map() }
  const locate = locator(text, lines, root)
  const problems: Problem[] = []
  const value = walk(document.contents, root, lines, reportInto(problems, locate), maxNodes)
  if (problems.length > 0) return { ok: false, error: sortProblems(problems) }
  if (value === null) {
    return { ok: false, error: [wholeFile('The file is empty', `A minimal example: ${example}`)] }
  }
  return { ok: true, value: { value, locate } }
}

/** Reads an object that a program passes in place of a file. */
export function readObject(input: unknown): ReadSource {
  const problems: Problem[] = []
  const locate: Locate = () => ({ line: 0, column: 0 })
  const value = copyPlain(input, reportInto(problems, locate))
  return problems.length > 0 ? { ok: false, error: problems } : { ok: true, value: { value, locate } }
}

export function tooLarge(maxBytes: number): Problem {
  return wholeFile('The file is too large', `At most ${formatBytes(maxBytes)}.`)
}

/** A problem with the file as a whole. */
export function wholeFile(message: string, hint: string): Problem {
  return { line: 1, column: 1, path: '', message, hint }
}

/** orc.yaml needs six levels, and `with` may need a few more. The limit also stops circular references. */
const MAX_DEPTH = 32

/** Deep-copies plain data, so that the caller's later changes have no effect, and reports anything YAML could not hold. */
function copyPlain(value: unknown, report: Report, path: Path = []): unknown {
  if (path.length > MAX_DEPTH) {
    report(
      path.slice(0, 6),
      'is nested too deeply',
      `At most ${MAX_DEPTH} levels. Check that the object does not contain itself.`,
    )
    return null
  }
  if (Array.isArray(value)) return value.map((item, index) => copyPlain(item, report, [...path, index]))
  if (typeof value !== 'object' || value === null) return copyScalar(value, report, path)
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== null && prototype !== Object.prototype) {
    report(path, 'must be a plain object', 'Use plain data that YAML could hold, not class instances.')
    return null
  }
  const copy: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    if (key === '__proto__') report([...path, key], PROTO_MESSAGE, PROTO_HINT, 'key')
    else if (item !== undefined) copy[key] = copyPlain(item, report, [...path, key])
  }
  return copy
}

const PROTO_MESSAGE = 'The key "__proto__" is not allowed'
const PROTO_HINT = 'Remove it.'

function copyScalar(value: unknown, report: Report, path: Path): unknown {
  if (value === null || ['string', 'number', 'boolean'].includes(typeof value)) return value
  report(path, `must not be a ${typeof value}`, 'Use text, a number, true, false or null.')
  return null
}

/** Refuses text that is not UTF-8: guessing another encoding could put wrong names into rules. */
function decodeUtf8(source: string | Uint8Array): Result<string, Problem> {
  if (typeof source === 'string') return { ok: true, value: source.replace(/^\uFEFF/, '') }
  const text = new TextDecoder().decode(source)
  if (isUtf8(source)) return { ok: true, value: text }
  // The decoder puts U+FFFD in place of invalid bytes.
  const before = text.slice(0, text.indexOf('\uFFFD')).split('\n')
  const utf16 = (source[0] === 0xff && source[1] === 0xfe) || (source[0] === 0xfe && source[1] === 0xff)
  const hint = utf16
    ? 'The file looks like UTF-16; save it as UTF-8.'
    : 'Save the file as UTF-8 and check the characters at this position.'
  const position = { line: before.length, column: before.at(-1)!.length + 1 }
  return { ok: false, error: { ...position, path: '', message: 'The file is not UTF-8', hint } }
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
    if (path.length > MAX_DEPTH)
      return giveUp(path.slice(0, 4), 'is nested too deeply', `At most ${MAX_DEPTH} levels.`)
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

const WIDTH = 100
const ROOM_AFTER = 20

/** Matches each character of a password in `://user:…@`; masking one by one keeps the columns right. */
const PASSWORD = /(?<=:\/\/[^\s:@/]{0,64}:[^\s@]{0,100})[^\s@](?=[^\s@]{0,100}@)/g

/** Returns line and column of an offset, with an excerpt of the line. */
function positionAt(
  offset: number,
  text: string,
  lines: LineCounter,
): Pick<Problem, 'line' | 'column' | 'excerpt'> {
  const found = lines.linePos(offset)
  const [line, column] = [Math.max(1, found.line), Math.max(1, found.col)]
  const begin = lines.lineStarts[line - 1] ?? 0
  const end = lines.lineStarts[line] ?? text.length
  return { line, column, excerpt: excerptOf(text, begin, end, column) }
}

/** Cuts a window around the column and replaces control characters, which could move the cursor of a terminal. */
function excerptOf(text: string, begin: number, end: number, column: number): SourceExcerpt {
  const skipped = Math.max(0, column - WIDTH + ROOM_AFTER)
  const window = text.slice(begin + skipped, Math.min(end, begin + skipped + WIDTH))
  const shown = window.replace(/[\x00-\x1f\x7f-\x9f]/g, ' ').trimEnd()
  return { text: shown.replace(PASSWORD, '*'), column: column - skipped }
}
